"""Data sets on pages: uploads and their faults, rows as a model is asked, runs, deletion, hostile text."""

import base64
import json
import re

import pytest

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2
from services.common.errors import ErrorKind
from services.gateway.pages.live import views
from tests.contract.gateway.pages.shown_pages import HOSTILE, Shown, show
from tests.fakes.gateway.dataset_runs import DATASET, stored_run
from tests.fakes.gateway.dataset_service import stored_dataset
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def kept(harness: GatewayHarness) -> dataset_pb2.Dataset:
    dataset = stored_dataset(
        DATASET,
        name="rows.jsonl",
        row_count=30,
        size_bytes=1234,
    )
    dataset.format, dataset.user, dataset.digest = dataset_pb2.DATASET_FORMAT_JSONL, "bob", 64 * "a"
    harness.scheduler.datasets.kept[DATASET] = dataset
    harness.scheduler.datasets.rows[DATASET] = [row(number) for number in range(30)]
    return dataset


def row(number: int, **body: object) -> dataset_pb2.DatasetRow:
    asked = body or {"messages": [{"role": "user", "content": f"question {number}?"}], "max_tokens": 5}
    return dataset_pb2.DatasetRow(
        doc_id=number, row_id=f"r-{number}", body_json=json.dumps(asked), target="two"
    )


async def sent(harness: GatewayHarness, content: str, *, is_script: bool = False) -> Shown:
    own = {"Origin": harness.http, "Sec-Fetch-Site": "same-origin", **(PART if is_script else {})}
    form = (
        '--x\r\nContent-Disposition: form-data; name="file"; filename="own.jsonl"\r\n\r\n'
        f"{content}\r\n--x--\r\n"
    )
    headers = {**own, "Content-Type": "multipart/form-data; boundary=x"}
    return await show(harness, "/datasets", method="POST", headers=headers, body=form)


async def test_file_of_a_form_is_stored_and_its_page_follows(harness: GatewayHarness) -> None:
    done = await sent(harness, "one\ntwo")
    assert done.status == 303
    assert done.headers["Location"].startswith("/datasets/ds_")
    assert harness.scheduler.datasets.content == b"one\ntwo"
    assert [header.name for header in harness.scheduler.datasets.headers] == ["own.jsonl"]
    scripted = await sent(harness, "one\ntwo\nthree", is_script=True)
    assert scripted.status == 201
    cookie = scripted.headers["Set-Cookie"].partition(";")[0]
    assert "3 rows" in base64.urlsafe_b64decode(cookie.partition("=")[2].strip('"')).decode()


@pytest.mark.parametrize("is_script", [False, True])
async def test_faulty_lines_are_named_where_they_are(harness: GatewayHarness, *, is_script: bool) -> None:
    lines = [f"broken {HOSTILE}", *(f"broken {number}" for number in range(24))]
    shown = await sent(harness, "\n".join(lines), is_script=is_script)
    assert shown.status == 422
    assert "own.jsonl has 25 faults; nothing of it is kept" in shown.html
    faults = shown.html.partition('<table class="faults">')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row" class="num">(\d+)</th>', faults) == [str(n) for n in range(1, 21)]
    assert re.findall(r"<pre>(.*?)</pre>", faults)[1:] == lines[1:20]
    assert "img" not in [tag for tag, _ in shown.elements]
    assert "The first 20 of 25." in shown.html
    assert ("<html" in shown.html) is not is_script


async def test_file_that_is_refused_as_a_whole_says_why(harness: GatewayHarness) -> None:
    harness.scheduler.datasets.refusal = refused(ErrorKind.INVALID, "INVALID_DATASET", "It is empty.")
    shown = await sent(harness, "x")
    assert (shown.status, "own.jsonl: It is empty." in shown.html) == (422, True)


async def test_upload_beside_too_many_others_is_refused_in_their_words(harness: GatewayHarness) -> None:
    sentence = "The limit of 8 uploads at a time is reached. Try again in 30 s."
    harness.scheduler.datasets.refusal = refused(ErrorKind.EXHAUSTED, "TOO_MANY_UPLOADS", sentence)
    shown = await sent(harness, "x")
    assert (shown.status, sentence in shown.html, "Queue is full" in shown.html) == (429, True, False)


async def test_foreign_page_uploads_nothing(harness: GatewayHarness) -> None:
    for headers in ({"Origin": "http://evil.example"}, {}):
        shown = await show(harness, "/datasets", method="POST", headers=headers, body="x")
        assert shown.status == 403
    assert harness.scheduler.datasets.headers == []


async def test_rows_are_shown_as_a_model_is_asked_page_by_page(harness: GatewayHarness) -> None:
    harness.scheduler.datasets.rows[DATASET][1] = row(1, prompt="Complete this:", temperature=0)
    parts = [{"type": "text", "text": "What is here?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    harness.scheduler.datasets.rows[DATASET][2] = row(2, messages=[{"role": "user", "content": parts}])
    shown = await show(harness, f"/datasets/{DATASET}")
    assert "question 0?" in shown.html
    assert "max_tokens" in shown.html
    assert "Complete this:" in shown.html
    assert "What is here?" in shown.html
    assert "image_url" in shown.html
    assert "rows 1 to 10 of 30" in " ".join(shown.html.split()).replace("\u2009", "")
    last = await show(harness, f"/datasets/{DATASET}?first=20", headers=PART)
    assert "question 29?" in last.html
    assert 'rel="next"' not in last.html
    assert last.headers["HX-Push-Url"] == f"/datasets/{DATASET}?first=20"
    assert "There is no row from 31 on" in (await show(harness, f"/datasets/{DATASET}?first=30")).html


async def test_runs_that_used_it_are_listed_and_compared(harness: GatewayHarness) -> None:
    runs = [stored_run(harness) for _ in range(2)]
    shown = await show(harness, f"/datasets/{DATASET}")
    assert harness.scheduler.listed[-1].dataset_id == DATASET
    hrefs = [a.get("href") for tag, a in shown.elements if tag == "a"]
    assert {f"/runs/{run.run_id}" for run in runs} <= set(hrefs)
    assert "/compare?" + "&".join(f"run={run.run_id}" for run in runs) in hrefs
    assert f"/runs/new?benchmark=dataset:{DATASET}" in hrefs


async def test_data_set_is_deleted_after_a_dialog_and_not_while_a_run_uses_it(
    harness: GatewayHarness,
) -> None:
    asking = await show(harness, f"/datasets/{DATASET}?ask=delete")
    assert any(tag == "dialog" and "open" in a for tag, a in asking.elements)
    own = {"Origin": harness.http}
    harness.scheduler.datasets.in_use.add(DATASET)
    kept = await show(harness, f"/datasets/{DATASET}/delete", method="POST", headers=own)
    assert kept.headers["Location"] == f"/datasets/{DATASET}"
    harness.scheduler.datasets.in_use.clear()
    done = await show(harness, f"/datasets/{DATASET}/delete", method="POST", headers=own)
    assert done.headers["Location"] == "/datasets"
    assert (await show(harness, f"/datasets/{DATASET}")).status == 404


async def test_runs_over_data_sets_are_unfinished_or_finished(harness: GatewayHarness) -> None:
    running = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    running.progress.total, running.progress.recorded, running.progress.tokens_per_second = 100, 40, 512
    shown = await show(harness, "/datasets/runs")
    assert "512 tok/s" in shown.html
    asked = harness.scheduler.listed
    assert {each.kind for each in asked} == {run_pb2.RUN_KIND_DATASET}
    assert "None on this page." in shown.html


async def test_hostile_text_is_text(harness: GatewayHarness, kept: dataset_pb2.Dataset) -> None:
    kept.name = kept.user = kept.endpoint = HOSTILE
    kept.models.append(HOSTILE)
    hostile = row(0, messages=[{"role": HOSTILE, "content": HOSTILE}], prompt=HOSTILE)
    hostile.row_id = hostile.target = HOSTILE
    hostile.metadata_json = json.dumps({"x": HOSTILE})
    harness.scheduler.datasets.rows[DATASET][0] = hostile
    for path in ("/datasets", f"/datasets/{DATASET}"):
        shown = await show(harness, path)
        assert shown.status == 200
        assert "img" not in [tag for tag, _ in shown.elements]
        assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
        assert not {"\u202e", "\u200b"} & set(shown.html)


def test_runs_over_data_sets_are_read_every_two_seconds_as_promised() -> None:
    assert views._READ_EVERY_SECONDS <= 2.0
