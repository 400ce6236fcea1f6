"""A comparison on a page: the verdict, the forest, flips as links, samples side by side, hostile text."""

import json
import re

import pytest

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import comparison_pb2, outcome_pb2
from services.common.errors import ErrorKind
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, running, show, summary_of
from tests.fakes.gateway.compared_runs import two_models
from tests.fakes.gateway.dataset_runs import recorded
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}
OTHER_ID = f"{RUN_ID[:-1]}2"
GONE_ID = f"{RUN_ID[:-1]}9"
RUNS = f"/compare?run={RUN_ID}&run={OTHER_ID}"


@pytest.fixture(autouse=True)
def compared(harness: GatewayHarness) -> comparison_pb2.Comparison:
    comparison = two_models()
    for run_id, compared in zip((RUN_ID, OTHER_ID), comparison.runs, strict=True):
        compared.run_id = run_id
        run = running()
        run.run_id = run_id
        harness.scheduler.put(run)
        summary = summary_of(run)
        for task, name in zip(summary.tasks, ("sst2", "rte", "cola"), strict=False):
            task.task = name
        group = summary.groups.add(group="entailment", tasks=["rte", "cb"])
        group.metrics.add(metric="acc", mean=0.7, ci_low=0.65, ci_high=0.75)
        harness.results.summaries[run_id] = summary
    harness.results.comparisons.comparison.CopyFrom(comparison)
    harness.results.answers.rows.append(row("the cat sat", "the dog sat", scores=(0.0, 1.0)))
    return harness.results.comparisons.comparison


def row(*texts: str, scores: tuple[float, ...], number: int = 7) -> answer_pb2.SideBySideRow:
    found = answer_pb2.SideBySideRow(doc_id=number, prompt="What sat?", target="dog", is_differing=True)
    for text, score in zip(texts, scores, strict=True):
        answer = recorded(number, scores={"acc": score})
        answer.outcome.answer.text = text
        found.answers.add(outcome=answer)
    return found


def links(shown: Shown) -> list[str]:
    return [attributes.get("href") or "" for tag, attributes in shown.elements if tag == "a"]


async def test_file_has_all_samples_that_are_shown_with_their_answers(harness: GatewayHarness) -> None:
    rows = harness.results.answers.rows
    rows += [row("same", "other", scores=(1.0, 0.0), number=number) for number in range(8, 14)]
    shown = await show(harness, f"/compare/export.jsonl?run={RUN_ID}&run={OTHER_ID}&task=rte&show=lost")
    lines = [json.loads(line) for line in shown.html.splitlines()]
    assert [line["id"] for line in lines] == [str(number) for number in range(8, 14)]
    answers = {name: value for name, value in lines[0].items() if name.endswith(("answer", "score"))}
    assert [*answers.values()] == ["same", 1.0, "other", 0.0]
    assert {each.task for each in harness.results.answers.listed} == {"rte"}
    assert f"/compare/export.csv?run={RUN_ID}&run={OTHER_ID}&task=sst2" in links(await show(harness, RUNS))


async def test_differences_are_those_of_the_other_to_the_reference_run(harness: GatewayHarness) -> None:
    shown = await show(harness, RUNS)
    assert shown.status == 200
    # Results has the reference run minus the other: −0.06 on rte, where the other is better.
    assert 'aria-label="+6.0 points, 95 % from +4.0 to +8.0"' in shown.html
    assert "▲ better" in shown.html
    assert "⚠ 12.5 % unparsed" in shown.html
    assert shown.html.count("the verdict depends on unparsed answers") >= 2
    assert "without unparsed answers" in shown.html
    assert '<th scope="row">temperature' in shown.html
    assert "○ cannot tell" in shown.html
    assert "only one pair" in shown.html
    assert "qqp: only a has it" in shown.html
    assert "Holm-corrected over 3 tests" in shown.html
    assert "<b>a and b cannot be distinguished</b>" in shown.html.replace("b and a", "a and b")
    assert "entailment" in shown.html


async def test_gap_of_best_and_worst_is_said_whatever_the_reference_run_is(
    harness: GatewayHarness, compared: comparison_pb2.Comparison
) -> None:
    assert "Best and worst" not in (await show(harness, RUNS)).html
    third = running()
    third.run_id = f"{RUN_ID[:-1]}3"
    harness.scheduler.put(third)
    harness.results.summaries[third.run_id] = summary_of(third)
    harness.results.answers.rows[:] = [row("one", "two", "three", scores=(0.0, 1.0, 0.0))]
    compared.runs.add(run_id=third.run_id, model="vllm/c")
    # a is the reference run, and b the best.
    for first, difference in ((0, 0.05), (1, 0.07)):
        compared.differences.add(
            first=first,
            second=2,
            metric="acc",
            first_mean=0.8,
            second_mean=0.8 - difference,
            difference=difference,
            verdict="VERDICT_FIRST_BETTER",
        )
    html = (await show(harness, f"{RUNS}&run={third.run_id}")).html
    assert "Best and worst: b is better than c by 7.0 points" in " ".join(html.split())


async def test_interval_without_zero_that_is_no_verdict_says_why(
    harness: GatewayHarness, compared: comparison_pb2.Comparison
) -> None:
    assert "not after the correction" not in (await show(harness, RUNS)).html
    compared.differences[0].ci_low, compared.differences[0].ci_high = -0.03, -0.01
    assert "not after the correction" in (await show(harness, RUNS)).html


async def test_samples_are_judged_by_the_metric_that_is_counted(harness: GatewayHarness) -> None:
    """By the task's first metric, not by the first of the alphabet, and by either key of a filter."""
    for summary in harness.results.summaries.values():
        del summary.tasks[0].metrics[:]
        summary.tasks[0].metrics.add(metric="exact_match,strict", mean=0.5)
        summary.tasks[0].metrics.add(metric="exact_match,flexible", mean=0.5)
    found = row("one", "two", scores=(0.0, 1.0))
    for answer, strict in zip(found.answers, (1.0, 0.0), strict=True):
        flexible = answer.outcome.scores.pop("acc")
        answer.outcome.scores["exact_match,strict"] = strict
        answer.outcome.scores["exact_match,flexible"] = flexible
    harness.results.answers.rows[:] = [found]
    lost = f"{RUNS}&task=sst2&show=lost"
    assert "Sample 7" in (await show(harness, lost)).html
    assert "Sample 7" in (await show(harness, f"{lost}&metric=exact_match")).html
    assert "Sample 7" not in (await show(harness, f"{lost}&metric=exact_match,flexible")).html
    part = await show(harness, lost, headers=PART | {"HX-Target": "section#samples"})
    assert "Sample 7" in part.html


async def test_flips_lead_to_their_samples(harness: GatewayHarness) -> None:
    harness.results.answers.rows.append(row("right", "wrong", scores=(1.0, 0.0), number=8))
    shown = await show(harness, RUNS)
    gained = f"{RUNS}&task=rte&show=gained#samples"
    assert gained in links(shown)
    found = await show(harness, gained.partition("#")[0])
    assert "Sample 7" in found.html
    assert "Sample 8" not in found.html
    lost = await show(harness, f"{RUNS}&task=rte&show=lost")
    assert "Sample 7" not in lost.html
    assert "Sample 8" in lost.html
    assert [asked.task for asked in harness.results.answers.listed] == ["sst2", "rte", "rte"]
    assert all(asked.only_differing for asked in harness.results.answers.listed)


async def test_words_that_differ_are_highlighted_and_either_side_opens(harness: GatewayHarness) -> None:
    shown = await show(harness, RUNS)
    assert "the<ins> dog</ins> sat" in shown.html
    # The reference run of two shows what the other does not have.
    assert "the<del> cat</del> sat" in shown.html
    for run_id in (RUN_ID, OTHER_ID):
        assert f"/runs/{run_id}/results?from=7&row=7.0#detail" in links(shown)
    await show(harness, f"/runs/{OTHER_ID}/results?from=7&row=7.0")
    assert harness.results.outcomes_asked[-1].first_sample == 7


async def test_another_reference_run_is_the_first_of_the_address(harness: GatewayHarness) -> None:
    shown = await show(harness, RUNS)
    assert any(link.startswith(f"/compare?run={OTHER_ID}&run={RUN_ID}") for link in links(shown))
    assert "Make it the reference run" in shown.html
    await show(harness, f"/compare?run={OTHER_ID}&run={RUN_ID}")
    assert list(harness.results.comparisons.compared[-1].run_ids) == [OTHER_ID, RUN_ID]


async def test_part_with_samples_compares_nothing_again(harness: GatewayHarness) -> None:
    headers = {**PART, "HX-Target": "section#samples"}
    shown = await show(harness, f"{RUNS}&task=rte&show=all", headers=headers)
    assert (shown.status, "<html" in shown.html) == (200, False)
    assert shown.headers["HX-Push-Url"] == f"{RUNS}&task=rte&show=all"
    assert harness.results.comparisons.compared == []
    assert not harness.results.answers.listed[-1].only_differing


async def test_models_are_compared_by_their_runs(harness: GatewayHarness) -> None:
    shown = await show(harness, "/compare?model=vllm/a&model=vllm/b&suite=glue&unknown=1")
    [asked] = harness.results.comparisons.compared
    assert (list(asked.models), asked.benchmark) == (["vllm/a", "vllm/b"], "glue")
    assert harness.results.answers.listed[0].run_ids == [RUN_ID, OTHER_ID]
    assert shown.status == 200


async def test_enter_in_a_field_of_the_selection_goes_on_choosing(harness: GatewayHarness) -> None:
    """A browser presses the first button of the form."""
    shown = await show(harness, f"/compare?run={RUN_ID}")
    form = shown.html.partition('<form id="selection"')[2].partition("</form>")[0]
    first = re.sub("<noscript>.*?</noscript>", "", form).partition("<button")[2].partition(">")[0]
    assert 'name="choose" value="1"' in first


async def test_runs_scored_in_other_ways_can_be_forced(harness: GatewayHarness) -> None:
    sentence = "Choices were scored by loglikelihood in one run and by generate in another."
    harness.results.comparisons.refusal = refused(
        ErrorKind.CONFLICT, "NOT_COMPARABLE", sentence, difference="scoring_method"
    )
    shown = await show(harness, RUNS)
    assert sentence in shown.html
    # The answers can be compared all the same.
    assert "Sample 7" in shown.html
    forced = await show(harness, f"{RUNS}&force=1")
    assert "▲ better" in forced.html
    assert f"{RUNS}&force=1" in links(shown)


async def test_runs_of_different_suites_have_one_fault(harness: GatewayHarness) -> None:
    sentence = "One run is over glue and another over starter."
    harness.results.comparisons.refusal = refused(ErrorKind.CONFLICT, "NOT_COMPARABLE", sentence)
    harness.results.summaries[OTHER_ID].ClearField("tasks")
    shown = await show(harness, RUNS)
    assert (shown.status, sentence in shown.html) == (200, True)
    assert 'id="samples"' not in shown.html
    part = await show(harness, f"{RUNS}&show=all", headers=PART | {"HX-Target": "samples"})
    assert "These runs share no task" in part.html


def over_dataset(harness: GatewayHarness, *run_ids: str) -> None:
    for run_id in run_ids:
        run = harness.scheduler.runs[run_id]
        run.order.ClearField("suite")
        run.order.dataset_id, run.dataset_name = "ds_12", "cities.jsonl"


async def test_data_set_has_the_name_of_its_file(
    harness: GatewayHarness, compared: comparison_pb2.Comparison
) -> None:
    over_dataset(harness, RUN_ID, OTHER_ID)
    compared.benchmark = "ds_12"
    shown = await show(harness, RUNS)
    assert "cities.jsonl</h1>" in shown.html
    assert "on cities.jsonl (" in shown.html
    assert f"/compare?run={RUN_ID}&suite=ds_12" in links(shown)
    offered = await show(harness, f"/compare?run={RUN_ID}&suite=ds_12")
    assert '<option value="ds_12" selected>cities.jsonl</option>' in offered.html


async def test_runs_that_cannot_be_compared_are_named_and_lead_to_those_that_can(
    harness: GatewayHarness,
) -> None:
    over_dataset(harness, OTHER_ID)
    sentence = "The runs are of glue and ds_12; only runs of one suite can be compared."
    harness.results.comparisons.refusal = refused(
        ErrorKind.CONFLICT, "NOT_COMPARABLE", sentence, difference="benchmark", first="glue", second="ds_12"
    )
    shown = await show(harness, RUNS)
    assert "The runs are of glue and cities.jsonl: only" in shown.html
    assert sentence not in shown.html
    for run_id, benchmark in ((RUN_ID, "glue"), (OTHER_ID, "ds_12")):
        assert f"/compare?run={run_id}&suite={benchmark}&choose=1" in links(shown)


@pytest.mark.parametrize(
    ("reason", "facts", "said"),
    [
        ("INVALID_PAGE_TOKEN", {}, "The samples have no such page. Start at the first one."),
        (
            "INVALID_PARAMETER",
            {"field": "task"},
            "Not all of these runs have the task mmlu. Choose another one.",
        ),
    ],
)
async def test_address_without_samples_says_what_to_do(
    harness: GatewayHarness, reason: str, facts: dict[str, str], said: str
) -> None:
    harness.results.answers.refusal = refused(ErrorKind.INVALID, reason, "task must be one of", **facts)
    headers = PART | {"HX-Target": "samples"}
    shown = await show(harness, f"{RUNS}&task=mmlu&after=bad", headers=headers)
    assert (shown.status, said in shown.html, "must be" in shown.html) == (200, True, False)
    assert f"{RUNS}&task=mmlu#samples" in links(shown)


@pytest.mark.parametrize(
    ("path", "sentence", "chosen"),
    [
        ("/compare", "Two to six runs or models", []),
        (f"/compare?run={RUN_ID}", "choose one more at least", [RUN_ID]),
        ("/compare?model=a&model=b", "Models are compared on a suite", ["a", "b"]),
        ("/compare?suite=glue" + "".join(f"&model={name}" for name in "abcdefg"), "at most 6", [*"abcdefg"]),
        # What is not an id is said, and the rest stays chosen.
        (f"/compare?run=abc&run={RUN_ID}", "Not found, so not chosen: abc. One is chosen", [RUN_ID]),
        # Runs that do not exist cannot be chosen, and are not counted.
        (f"/compare?run={GONE_ID}", f"Not found, so not chosen: {GONE_ID}.</p>", []),
        (f"/compare?run={GONE_ID}&run={RUN_ID}&choose=1", f"not chosen: {GONE_ID}.</p>", [RUN_ID]),
        ("/compare?" + "&".join(f"run={number}" for number in range(7)), "0, 1, 2 and 4 more.</p>", []),
    ],
)
async def test_incomplete_choice_asks_for_the_rest(
    harness: GatewayHarness, path: str, sentence: str, chosen: list[str]
) -> None:
    entry = harness.results.entries.page.entries.add(run_id=RUN_ID, model="vllm/a", benchmark="glue")
    entry.figure.mean = 0.5
    shown = await show(harness, path)
    assert shown.status == 200
    assert sentence in shown.html
    checked = [a["value"] for tag, a in shown.elements if tag == "input" and "checked" in a]
    assert checked == chosen


async def test_form_of_a_mark_leads_back_to_the_comparison(harness: GatewayHarness) -> None:
    shown = await show(harness, f"{RUNS}&show=all")
    backs = [a["value"] for tag, a in shown.elements if tag == "input" and a.get("name") == "back"]
    assert [each for each in backs if str(each).startswith("/compare?run=") and "show=all" in str(each)]


async def test_answer_is_marked_by_a_form_of_our_own(harness: GatewayHarness) -> None:
    own = {"Origin": harness.http, "Sec-Fetch-Site": "same-origin"}
    form = {**own, "Content-Type": "application/x-www-form-urlencoded"}
    path = f"/runs/{RUN_ID}/marks"
    done = await show(
        harness, path, method="POST", headers=form, body="sample=7&mark=golden&back=/compare?run=x"
    )
    assert (done.status, done.headers["Location"]) == (303, "/compare?run=x")
    part = await show(
        harness, path, method="POST", headers={**form, **PART}, body="sample=7&name=2&mark=wrong"
    )
    assert part.status == 200
    # It is said, and the row of a list has its new mark.
    assert "The answer is marked as wrong" in part.headers["HX-Trigger"]
    [beside] = [a for _, a in part.elements if a.get("id") == "mark-7-0"]
    assert (beside["hx-swap-oob"], beside["class"]) == ("true", "wrong-mark")
    # The focus goes to the same button of the form that comes in its place.
    ids = [a["id"] for tag, a in part.elements if tag == "button"]
    assert ids == [f"golden-{RUN_ID}-7-0", f"wrong-{RUN_ID}-7-0"]
    assert 'aria-pressed="false" data-press="2"' in part.html
    assert 'value="" aria-pressed="true" data-press="shift 2"' in part.html
    asked = harness.results.answers.marked
    assert [
        (each.run_id, each.is_golden, each.is_marked_wrong, each.answers[0].sample) for each in asked
    ] == [
        (RUN_ID, True, False, 7),
        (RUN_ID, False, True, 7),
    ]
    evil = await show(harness, path, method="POST", headers=form, body="sample=7&back=//evil.example")
    assert evil.headers["Location"] == f"/runs/{RUN_ID}/results"


async def test_hostile_text_is_text(harness: GatewayHarness, compared: comparison_pb2.Comparison) -> None:
    compared.benchmark = compared.runs[0].model = HOSTILE
    # Its name is sent back by a field too, so it stays as it is there.
    compared.differences[0].task = HOSTILE.replace("\u202e", "").replace("\u200b", "")
    compared.differences[3].remark = HOSTILE
    compared.warnings.append(HOSTILE)
    found = row(HOSTILE, f"other {HOSTILE}", scores=(0.0, 1.0))
    found.prompt = found.target = found.row_id = HOSTILE
    failed = found.answers.add().outcome
    failed.status = outcome_pb2.OUTCOME_STATUS_FAILED
    failed.outcome.failure.message = HOSTILE
    harness.results.answers.rows[:] = [found]
    run = running()
    run.run_id = third = f"{RUN_ID[:-1]}3"
    harness.scheduler.put(run)
    harness.results.comparisons.refusal = refused(ErrorKind.CONFLICT, "NOT_COMPARABLE", HOSTILE)
    for path in (f"{RUNS}&run={third}", f"{RUNS}&run={third}&force=1"):
        if "force" in path:
            compared.runs.add(run_id=third, model=HOSTILE)
        shown = await show(harness, path)
        assert shown.status == 200
        assert "img" not in [tag for tag, _ in shown.elements]
        assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
        assert not {"\u202e", "\u200b"} & set(shown.html)
