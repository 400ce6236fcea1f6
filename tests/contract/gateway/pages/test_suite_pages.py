"""Suites on pages: tasks, samples with shots, a suite that is checked while it is written, hostile text."""

from collections.abc import Sequence

import pytest

from proctor.v1 import sample_pb2
from services.gateway.pages.suites.view import EXAMPLE
from tests.contract.gateway.pages.shown_pages import HOSTILE, Shown, show
from tests.fakes.gateway.dataset_runs import DATASET
from tests.fakes.gateway.dataset_service import stored_dataset
from tests.fakes.gateway.gateway_harness import GatewayHarness

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def sample(harness: GatewayHarness) -> sample_pb2.Sample:
    sample = harness.scheduler.suites.sample
    sample.prompt.text = "Review: good. Sentiment:"
    sample.choices.extend([" negative", " positive"])
    sample.target.choice = 1
    sample.doc_json = '{"text": "good"}'
    return sample


async def written(
    harness: GatewayHarness,
    path: str,
    text: str,
    *,
    headers: dict[str, str] | None = None,
    file: str = "",
    fields: Sequence[tuple[str, str]] = (),
) -> Shown:
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in (("document", text), *fields)
    ]
    name = "rows.csv" if file else ""
    head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
    parts.append(f"{head}Content-Type: application/octet-stream\r\n\r\n{file}\r\n--x--\r\n")
    own = {"Origin": harness.http, "Content-Type": "multipart/form-data; boundary=x", **(headers or {})}
    return await show(harness, path, method="POST", headers=own, body="".join(parts))


async def test_suites_are_listed_and_found_by_name(harness: GatewayHarness) -> None:
    shown = await show(harness, "/suites")
    assert "mine/task.yaml: doc_to_text is missing" in shown.html
    assert 'href="/suites/starter"' in shown.html
    found = await show(harness, "/suites?q=START", headers=PART)
    assert "mine" not in found.html
    assert found.headers["HX-Push-Url"] == "/suites?q=START"
    assert "No suite has this in its name" in (await show(harness, "/suites?q=zzz")).html


async def test_choices_have_the_prompt_that_a_model_in_words_is_sent(
    harness: GatewayHarness, sample: sample_pb2.Sample
) -> None:
    said = (
        "Reply with the text of exactly one of these options, and nothing else:\n- negative\n- positive\n\n"
    )
    assert f"{said}Review: good. Sentiment:</pre>" in (await show(harness, "/suites/starter")).html
    del sample.choices[:]
    assert "Reply with" not in (await show(harness, "/suites/starter")).html


async def test_sample_is_shown_as_a_model_gets_it_with_shots(harness: GatewayHarness) -> None:
    shown = await show(harness, "/suites/starter?row=2&num_fewshot=3")
    asked = harness.scheduler.suites.shown[-1]
    assert (asked.suite, asked.task, asked.doc_id, asked.num_fewshot) == ("starter", "sentiment", 2, 3)
    assert "Review: good. Sentiment:" in shown.html
    assert '<code> positive</code> <span class="outcome right">target</span>' in shown.html
    assert "f1" in shown.html
    part = await show(harness, "/suites/starter?task=sentiment&num_fewshot=", headers=PART)
    assert "<html" not in part.html
    assert not harness.scheduler.suites.shown[-1].HasField("num_fewshot")


@pytest.mark.parametrize("query", ["row=9", "task=zzz", "row=x&num_fewshot=-1&unknown=1"])
async def test_sample_that_is_not_there_leaves_the_rest_of_the_page(
    harness: GatewayHarness, query: str
) -> None:
    shown = await show(harness, f"/suites/starter?{query}")
    assert shown.status == 200
    assert ("The task has 5 rows" in shown.html) == (query == "row=9")
    assert ("There is no task zzz" in shown.html) == (query == "task=zzz")
    assert "own rows" in shown.html


@pytest.mark.parametrize("name", ["zzz", DATASET])
async def test_unknown_suite_is_not_found(harness: GatewayHarness, name: str) -> None:
    harness.scheduler.datasets.kept[DATASET] = stored_dataset(DATASET)
    shown = await show(harness, f"/suites/{name}")
    assert (shown.status, name in shown.html) == (404, True)


async def test_document_is_checked_line_by_line_while_it_is_written(harness: GatewayHarness) -> None:
    assert "suite: cities" in (await show(harness, "/suites/new")).html
    wrong = await written(harness, "/suites/check", "suite: x\r\nbroken: 1", headers=PART)
    assert (wrong.status, "<html" in wrong.html) == (200, False)
    assert "<pre>broken: 1</pre>" in wrong.html
    right = await written(harness, "/suites/check", "suite: x", headers=PART, file="a,b")
    assert "mine is valid" in right.html
    [_, document] = harness.scheduler.suites.checked
    assert dict(document.files) == {"rows.csv": b"a,b"}
    assert "\r" not in harness.scheduler.suites.checked[0].text
    # Without scripts a button checks, and the text stays.
    plain = await written(harness, "/suites/check", "broken: 1")
    assert ("<html" in plain.html, plain.html.count("broken: 1") >= 2) == (True, True)
    assert harness.scheduler.suites.added == []


async def test_example_is_greeted_without_a_fault(harness: GatewayHarness) -> None:
    example = harness.scheduler.suites
    # The page sends it as soon as it is loaded.
    shown = await written(harness, "/suites/check", EXAMPLE.replace("\n", "\r\n"), headers=PART)
    assert ("fault" in shown.html, "attach" in shown.html, example.checked) == (False, True, [])
    await written(harness, "/suites/check", EXAMPLE, headers=PART, file="city,country")
    await written(harness, "/suites/check", f"{EXAMPLE}#", headers=PART)
    assert len(example.checked) == 2


async def test_suite_is_added_once_it_is_right(harness: GatewayHarness) -> None:
    wrong = await written(harness, "/suites", "broken: 1")
    assert (wrong.status, "1 fault" in wrong.html) == (422, True)
    # A script keeps the text and the files where they are, and goes to the suite itself.
    part = await written(harness, "/suites", "broken: 1", headers=PART)
    assert (part.status, "1 fault" in part.html, "<html" in part.html) == (422, True, False)
    added = await written(harness, "/suites", "suite: mine", headers=PART)
    assert (added.status, added.headers["HX-Redirect"]) == (200, "/suites/mine")
    done = await written(harness, "/suites", "suite: mine", file="a")
    assert (done.status, done.headers["Location"]) == (303, "/suites/mine")
    assert harness.scheduler.suites.added[0].user == "local"
    foreign = await written(harness, "/suites", "suite: x", headers={"Origin": "http://evil.example"})
    assert foreign.status == 403


async def test_a_prompt_is_shown_before_the_suite_is_added(harness: GatewayHarness) -> None:
    blank = await show(harness, "/suites/new")
    assert "Nothing is stored." in blank.html
    fields = (("task", ""), ("row", "3"))
    part = await written(harness, "/suites/preview", "suite: x", headers=PART, file="a,b", fields=fields)
    [asked] = harness.scheduler.suites.shown
    assert (asked.document.text, dict(asked.document.files), asked.doc_id) == (
        "suite: x",
        {"rows.csv": b"a,b"},
        3,
    )
    assert ("<html" in part.html, "Review: good. Sentiment:" in part.html) == (False, True)
    assert ("<dt>Answers per row</dt>" in part.html, 'name="row" min="0" value="3"' in part.html) == (
        True,
        True,
    )
    # It follows the text from now on.
    assert 'hx-trigger="input changed delay:1s from:#document' in part.html
    faulty = await written(harness, "/suites/preview", "broken: 1", headers=PART)
    assert (faulty.status, "broken: 1 is not a key" in faulty.html) == (200, True)
    beyond = await written(harness, "/suites/preview", "suite: x", headers=PART, fields=(("row", "9"),))
    assert "The task has 5 rows" in beyond.html
    # Without scripts the text stays.
    plain = await written(harness, "/suites/preview", f"suite: {HOSTILE}")
    assert (
        "<html" in plain.html,
        "Review: good." in plain.html,
        "img" in [tag for tag, _ in plain.elements],
    ) == (
        True,
        True,
        False,
    )
    assert harness.scheduler.suites.added == []


async def test_a_new_version_begins_with_the_text_and_the_files_of_the_last(harness: GatewayHarness) -> None:
    await written(harness, "/suites", "suite: mine", file="a")
    shown = await show(harness, "/suites/new?of=mine")
    assert "Write a new version of mine" in shown.html
    assert ("suite: mine</textarea>" in shown.html, 'value="rows.csv" checked' in shown.html) == (True, True)
    base = ("of", "mine@1")
    kept = await written(harness, "/suites", "suite: mine\n# 2", fields=(base, ("kept", "rows.csv")))
    assert (kept.status, kept.headers["Location"]) == (303, "/suites/mine")
    await written(harness, "/suites", "suite: mine\n# 3", fields=(base,))
    await written(harness, "/suites", "suite: mine\n# 4", file="b", fields=(base, ("kept", "rows.csv")))
    files = [dict(one.document.files) for one in harness.scheduler.suites.added]
    assert files == [{"rows.csv": b"a"}, {"rows.csv": b"a"}, {}, {"rows.csv": b"b"}]
    # What is not kept stays so where the form comes back.
    faulty = await written(harness, "/suites", "broken: 1", fields=(base,))
    assert (faulty.status, 'value="rows.csv" >' in faulty.html or 'value="rows.csv">' in faulty.html) == (
        422,
        True,
    )
    assert (await show(harness, "/suites/new?of=zzz")).status == 404


async def test_a_suite_of_a_user_links_to_its_next_version(harness: GatewayHarness) -> None:
    shown = (await show(harness, "/suites/starter")).html
    assert "Write a new version" not in shown
    assert ("Answers per row" in shown, '<td class="num">4</td>' in shown) == (True, True)
    assert 'href="/suites/new?of=mine"' in (await show(harness, "/suites/mine")).html


async def test_version_is_deleted_unless_a_run_used_it(harness: GatewayHarness) -> None:
    await written(harness, "/suites", "suite: mine")
    form = {"Origin": harness.http, "Content-Type": "application/x-www-form-urlencoded"}
    harness.scheduler.suites.in_use.add(1)
    kept = await show(harness, "/suites/mine/delete", method="POST", headers=form, body="version=1")
    assert kept.headers["Location"] == "/suites/mine"
    harness.scheduler.suites.in_use.clear()
    done = await show(harness, "/suites/mine/delete", method="POST", headers=form, body="version=1")
    assert done.headers["Location"] == "/suites"
    again = await show(harness, "/suites/mine/delete", method="POST", headers=form, body="version=9")
    assert (again.status, "There is no suite" in again.html) == (400, True)


async def test_hostile_text_is_text(harness: GatewayHarness, sample: sample_pb2.Sample) -> None:
    sample.prompt.text = sample.choices[0] = HOSTILE
    sample.prompt.messages.add(role=HOSTILE, content=HOSTILE)
    for shown in (
        await show(harness, "/suites/starter"),
        await written(harness, "/suites/check", f"broken {HOSTILE}"),
    ):
        assert shown.status == 200
        assert "img" not in [tag for tag, _ in shown.elements]
        assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
