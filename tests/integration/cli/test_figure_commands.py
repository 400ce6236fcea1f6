"""`compare`, `leaderboard`, `history`, `export` and `rescore` as a script sees them, by a real gateway."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from proctor.v1 import comparison_pb2, leaderboard_pb2, run_pb2, summary_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from services.common.errors import ErrorKind
from tests.fakes.eventually import eventually
from tests.fakes.gateway.backend_services import refused
from tests.fakes.gateway.compared_runs import failed_gate, planned_size, two_models
from tests.fakes.gateway.dataset_runs import stored_run
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.stack.command_line import CommandLine, ended
from tests.fakes.thorough_cases import first_cases

FIRST, SECOND = (run.run_id for run in two_models().runs)


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        running.results.comparisons.comparison.CopyFrom(two_models())
        yield running


async def test_runs_are_compared_by_their_ids_and_models_on_a_suite(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    shown = await proctor("compare", FIRST, SECOND, "--metric", "acc")
    assert (shown.code, shown.err) == (0, "")
    assert "B is better" in shown.out
    reported = await proctor("compare", "vllm/a", "vllm/b", "--suite", "glue", "--json")
    assert reported.document["differences"][1]["verdict"] == "second_better"
    assert reported.document["differences"][3]["difference"] is None
    by_runs, by_models = harness.results.comparisons.compared
    assert (list(by_runs.run_ids), list(by_runs.metrics)) == ([FIRST, SECOND], ["acc"])
    assert (list(by_models.models), by_models.benchmark) == (["vllm/a", "vllm/b"], "glue")


@pytest.mark.parametrize(
    "arguments", [("vllm/a", "vllm/b"), (FIRST, "vllm/b"), (FIRST, SECOND, FIRST, "--flips", "sst2")]
)
async def test_what_cannot_be_compared_is_code_2(proctor: CommandLine, arguments: tuple[str, ...]) -> None:
    finished = await proctor("compare", *arguments)
    assert (finished.code, finished.out) == (2, "")


async def test_runs_scored_in_different_ways_are_compared_by_force_only(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    sentence = "One is scored by loglikelihood and one by generate; --force compares them."
    harness.results.comparisons.refusal = refused(ErrorKind.CONFLICT, "NOT_COMPARABLE", sentence)
    finished = await proctor("compare", FIRST, SECOND)
    assert (finished.code, finished.err) == (2, f"{sentence}\n")
    assert (await proctor("compare", FIRST, SECOND, "--force")).code == 0


async def test_a_watch_goes_on_where_two_runs_cannot_be_compared(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    sentence = "One is scored by loglikelihood and one by generate; --force compares them."
    harness.results.comparisons.refusal = refused(ErrorKind.CONFLICT, "NOT_COMPARABLE", sentence)
    harness.scheduler.submitted_state = run_pb2.RUN_STATE_COMPLETED
    watch = ("watch-models", "vllm/*", "--suite", "glue", "--name", "new", "--against", "gemini/any")
    watched = (await proctor(*watch, "--json")).document["watched"]
    assert [each["problem"] for each in watched] == ["", *[sentence] * (len(watched) - 1)]
    assert len(harness.results.comparisons.gated) == len(watched) - 1 > 0
    shown = await proctor(*watch)
    assert (shown.code, "by loglikelihood" in shown.out + shown.err) == (0, True)


async def test_a_watch_with_another_limit_of_cost_finds_the_runs_that_it_has_ordered(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    sentence = "This request_id is of another order."
    harness.scheduler.refusal = refused(ErrorKind.CONFLICT, "REQUEST_ID_TAKEN", sentence, run_id=FIRST)
    harness.scheduler.runs[FIRST] = run_pb2.Run(run_id=FIRST, state=run_pb2.RUN_STATE_COMPLETED)
    watch = ("watch-models", "vllm/*", "--suite", "glue", "--name", "new", "--max-cost", "7", "--json")
    watched = (await proctor(*watch)).document["watched"]
    assert {(each["run_id"], each["problem"]) for each in watched} == {(FIRST, "")}


async def test_flips_are_listed_over_all_pages_or_up_to_a_limit(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.results.comparisons.flips = [
        comparison_pb2.Flip(task="sst2", doc_id=row, first_prediction=" yes") for row in range(5)
    ]
    shown = await proctor("compare", FIRST, SECOND, "--flips", "sst2")
    assert "sst2 row 4" in shown.out
    assert "5 samples on which they differ" in shown.out
    reported = await proctor("compare", FIRST, SECOND, "--flips", "sst2", "--max-flips", "3", "--json")
    assert [flip["doc_id"] for flip in reported.document["flips"]] == [0, 1, 2]
    asked = harness.results.comparisons.listed[0]
    assert (asked.first_run_id, asked.second_run_id, asked.task) == (FIRST, SECOND, "sst2")


async def test_a_gate_is_an_exit_code_a_comment_and_a_report(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    comparisons = harness.results.comparisons
    comparisons.gate.CopyFrom(failed_gate())
    hostile = "| [x](http://evil) <b>@all _x_"
    comparisons.gate.warnings.append(f"{'a long sentence of ours, ' * 20}with its end")
    comparisons.flips = [
        comparison_pb2.Flip(task="rte", doc_id=3, sample=9, second_score=1, first_prediction=hostile),
        # It got better.
        comparison_pb2.Flip(task="rte", doc_id=4, first_score=1),
    ]
    comment, report = tmp_path / "gate.md", tmp_path / "gate.xml"
    files = ("--markdown", str(comment), "--junit", str(report), "--pages", "https://p.example/")
    shown = await proctor("gate", FIRST, "--against", SECOND, "--suite-metric", "rte=acc", *files)
    assert (shown.code, shown.err) == (1, "")
    assert "FAIL" in shown.out
    assert "a true drop of 0.0300 would fail in 80 % of repetitions over 400 pairs" in shown.out
    written = comment.read_text()
    assert written.startswith("### FAIL: glue\n")
    assert f"https://p.example/runs/{FIRST}/results?from=9&row=9.0#detail" in written
    assert "&#124; &#91;x&#93;" in written
    assert "<b>" not in written
    assert "_x_" not in written
    assert "with its end\n" in written
    assert "rte 4" not in written
    suite = ET.parse(report).getroot()[0]
    assert [(len(case), case.get("name")) for case in suite] == [
        (0, "the runs are comparable"),
        (0, "sst2 (acc)"),
        (1, "rte (acc)"),
        (1, "cola (mcc)"),
    ]
    assert [case[0].tag for case in suite if len(case)] == ["failure", "error"]
    [asked] = comparisons.gated
    assert (asked.run_id, asked.base_run_id, dict(asked.metrics)) == (FIRST, SECOND, {"rte": "acc"})


async def test_a_plan_takes_the_leading_models_where_none_are_named(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    comparisons = harness.results.comparisons
    comparisons.plan.CopyFrom(planned_size())
    named = await proctor("plan-size", FIRST, SECOND, "--difference", "0.5pt")
    assert (named.code, list(comparisons.planned[0].run_ids)) == (0, [FIRST, SECOND])
    assert comparisons.planned[0].difference_points == 0.5
    assert "12,000" in named.out
    assert "as now" in named.out
    assert "0.3000 between rows, 0.4000 between rollouts of a row" in named.out
    few = await proctor("plan-size", "--suite", "glue", "--difference", "1pt")
    assert (few.code, few.out) == (2, "")
    entries = harness.results.entries.leaderboard.entries
    for model in ("vllm/a", "vllm/b"):
        entries.add(model=model)
    assert (await proctor("plan-size", "--suite", "glue", "--difference", "1pt")).code == 0
    assert list(comparisons.planned[1].models) == ["vllm/a", "vllm/b"]
    wrong = await proctor("plan-size", FIRST, SECOND, "--difference", "1%")
    assert (wrong.code, wrong.err[:12]) == (2, "--difference")


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("GATE_VERDICT_PASS", 0), ("GATE_VERDICT_FAIL", 1), ("GATE_VERDICT_INCONCLUSIVE", 9)],
)
async def test_each_decision_of_a_gate_has_its_exit_code(
    harness: GatewayHarness, proctor: CommandLine, verdict: str, code: int
) -> None:
    harness.results.comparisons.gate.CopyFrom(failed_gate())
    harness.results.comparisons.gate.verdict = comparison_pb2.GateVerdict.Value(verdict)
    reported = await proctor("gate", FIRST, "--against", SECOND, "--json")
    assert (reported.code, reported.document["tasks"][1]["verdict"]) == (code, "fail")


@pytest.mark.parametrize(
    "options",
    [("--margin", "0.01"), ("--margin", "1%"), ("--suite-metric", "rte"), ("--suite-metric", "=acc")],
)
async def test_a_gate_that_is_asked_wrongly_is_code_2(proctor: CommandLine, options: tuple[str, ...]) -> None:
    finished = await proctor("gate", FIRST, "--against", SECOND, *options)
    assert (finished.code, finished.out) == (2, "")
    assert finished.err.startswith(options[0])


async def test_leaderboard_is_a_table_or_a_document(harness: GatewayHarness, proctor: CommandLine) -> None:
    harness.results.entries.leaderboard.metric = "accuracy"
    assert "No completed run of starter has accuracy yet." in (await proctor("leaderboard", "starter")).out
    figure = summary_pb2.MetricFigure(metric="acc", mean=0.5)
    harness.results.entries.leaderboard.entries.add(rank=1, model="vllm/a", figure=figure)
    assert "vllm/a" in (await proctor("leaderboard", "glue", "--best", "--scoring-method", "generate")).out
    reported = await proctor("leaderboard", "glue", "--json")
    assert reported.document["entries"][0]["figure"]["mean"] == 0.5
    assert reported.document["entries"][0]["figure"]["ci_low"] is None
    by_default, asked, *_ = harness.results.entries.leaderboards_asked
    assert by_default.metric == ""
    assert (asked.is_best, asked.scoring_method) == (True, run_pb2.SCORING_METHOD_GENERATE)
    assert (await proctor("leaderboard", "glue", "--scoring-method", "magic")).code == 2


@first_cases(1, "command", [("leaderboard",), ("history", "--suite"), ("runs", "--suite")])
async def test_suite_that_does_not_exist_is_not_found(proctor: CommandLine, command: tuple[str, ...]) -> None:
    finished = await proctor(*command, "nope")
    assert (finished.code, finished.err) == (4, "There is no suite nope. There are: mine, starter.\n")


@first_cases(
    1,
    "command",
    [
        ("leaderboard", "mine@1"),
        ("history", "--suite", "mine@1"),
        ("runs", "--suite", "mine@1"),
        ("compare", "v/a", "v/b", "--suite", "mine@1"),
    ],
)
async def test_version_of_a_suite_is_refused_where_runs_are_looked_for(
    proctor: CommandLine, command: tuple[str, ...]
) -> None:
    finished = await proctor(*command)
    assert finished.code == 2
    assert "mine@1 names a version" in finished.err


async def test_history_is_paged(harness: GatewayHarness, proctor: CommandLine) -> None:
    harness.results.entries.page.entries.append(
        leaderboard_pb2.LeaderboardEntry(run_id=FIRST, model="vllm/a", state=run_pb2.RUN_STATE_COMPLETED)
    )
    harness.results.entries.page.total, harness.results.entries.page.next_page_token = 9, "next"
    shown = await proctor("history", "--model", "vllm/a", "--days", "7")
    assert FIRST in shown.out
    assert "9 runs in the last 7 days; the next page: --page next" in shown.out
    [asked] = harness.results.entries.pages_asked
    assert (asked.model, asked.days) == ("vllm/a", 7)


async def test_run_is_exported_to_a_file_or_to_stdout(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    harness.results.exports.pieces = [b"a,b\n", b"1,2\n"]
    target = tmp_path / "run.csv"
    finished = await proctor(
        "export", FIRST, "--format", "csv", "--task", "sst2", "-o", str(target), "--json"
    )
    assert finished.document == {"file": str(target), "bytes": 8}
    assert target.read_bytes() == b"a,b\n1,2\n"
    assert (await proctor("export", FIRST, "--format", "csv", "-o", "-")).out == "a,b\n1,2\n"
    asked = harness.results.exports.asked[0]
    assert (asked.task, asked.format) == ("sst2", export_pb2.EXPORT_FORMAT_CSV)
    again = await proctor("export", FIRST, "--format", "csv", "-o", str(target))
    assert again.code == 2
    assert "exists; --force replaces it" in again.err
    assert len(harness.results.exports.asked) == 2


async def test_export_that_breaks_off_leaves_no_file(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    exports = harness.results.exports
    exports.pieces = [b"a" * 1000]
    exports.refusal, exports.refuse_at = refused(ErrorKind.INTERNAL, "INTERNAL", "The disk is gone."), 1
    target = tmp_path / "out" / "run.csv"
    target.parent.mkdir()
    finished = await proctor("export", FIRST, "--format", "csv", "-o", str(target))
    assert (finished.code, finished.err) == (6, "The disk is gone.\n")
    assert list(target.parent.iterdir()) == []


async def test_export_that_is_interrupted_ends_everywhere_and_leaves_no_file(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    exports = harness.results.exports
    exports.pieces, exports.is_endless = [b"x" * 1000], True
    target = tmp_path / "out" / "run.csv"
    target.parent.mkdir()
    process = await proctor.start("export", FIRST, "--format", "csv", "-o", str(target))
    await eventually(lambda: any(target.parent.iterdir()), "the file is being written")
    process.send_signal(signal.SIGINT)
    assert (await ended(process)).code == 130
    assert list(target.parent.iterdir()) == []
    await eventually(lambda: exports.streams_open == 0, "the export is over")


async def test_reader_that_has_seen_enough_is_no_failure(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.results.exports.pieces = [b"line\n" * 100_000] * 10
    finished = await proctor.piped("export", FIRST, "--format", "csv", "-o", "-", into="head -n 1")
    assert (finished.code, finished.out, finished.err) == (0, "line\n", "")


async def test_rescored_figures_stand_beside_the_recorded_ones(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    response = harness.results.rescoring.response
    response.summary.metrics.add(metric="exact_match", mean=0.5)
    response.recorded.metrics.add(metric="exact_match", mean=0.25)
    response.changed = 7
    filters = tmp_path / "filters.yaml"
    filters.write_text("- name: last\n  filter: [{function: take_first}]\n")
    metric = '{"metric": "f1", "average": "macro"}'
    options = ("--metric", metric, "--metric", "exact_match", "--filters", str(filters))
    shown = await proctor("rescore", FIRST, "--task", "gsm8k", *options)
    assert "0.2500" in shown.out
    assert "0.5000" in shown.out
    assert "7 answers are parsed differently" in shown.out
    assert "cannot be scored" not in shown.out
    [asked] = harness.results.rescoring.asked
    assert [(use.name, use.options_json) for use in asked.metrics] == [
        ("f1", '{"average": "macro"}'),
        ("exact_match", ""),
    ]
    assert asked.filters_json == '[{"name": "last", "filter": [{"function": "take_first"}]}]'
    assert (await proctor("rescore", FIRST, "--task", "gsm8k", "--metric", "{f1}")).code == 2


async def test_rescore_orders_a_judge_as_the_command_judge_does(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.scheduler.put(run_pb2.Run(run_id=FIRST, order=run_pb2.RunOrder(suite="glue", project_id=3)))
    harness.scheduler.submitted_state = run_pb2.RUN_STATE_COMPLETED
    assert (await proctor("rescore", FIRST, "--judge", "openai/judge:style@1-5")).code == 0
    judge = ("judge", FIRST, "--model", "openai/judge", "--prompt", "style", "--scale", "1-5")
    assert (await proctor(*judge)).code == 0
    by_rescore, by_judge = (each.order for each in harness.scheduler.submitted)
    assert by_rescore == by_judge
    for wrong in (("--task", "t", "--judge", "openai/judge"), ("--judge", "openai/judge:"), ()):
        assert (await proctor("rescore", FIRST, *wrong)).code == 2


async def test_answers_that_cannot_be_rescored_are_named(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    run, response = stored_run(harness), harness.results.rescoring.response
    response.unscored = 30
    response.unscored_answers.add(sample=3, row_id="r3", problem="the target 'x' names no number")
    response.unscored_answers.add(sample=7, problem="the target 'y' names no number")
    shown = await proctor("rescore", run.run_id, "--task", "rows", "--metric", "numeric")
    assert shown.out.endswith(
        "30 answers cannot be scored so, and are in no figure:\n"
        "  r3: the target 'x' names no number\n"
        "  sample 7: the target 'y' names no number\n"
        "  and 28 more\n"
    )
    run.order.rollouts, response.unscored_answers[0].rollout = 2, 1
    shown = await proctor("rescore", run.run_id, "--task", "rows", "--metric", "numeric")
    assert "  r3, rollout 1: the target 'x'" in shown.out
    assert "  sample 7, rollout 0: the target 'y'" in shown.out
    shown = await proctor("rescore", run.run_id, "--task", "rows", "--json")
    assert [one["row_id"] for one in shown.document["unscored_answers"]] == ["r3", ""]


async def test_what_a_corpus_has_is_stored_with_a_run(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    summary = harness.results.summaries[FIRST] = summary_pb2.RunSummary(run_id=FIRST)
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "page.txt").write_text("one two three four five")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"q": "two three four"}\n{"q": "six seven eight"}\n')
    counted = await proctor(
        "contamination", "overlap", str(rows), str(tmp_path / "crawl"), "--ngram", "3", "--run", FIRST
    )
    assert counted.code == 0, counted.err
    assert (await proctor("contamination", "canary", str(tmp_path / "crawl"), "--run", FIRST)).code == 0
    stored = [(one.corpus, one.found, one.searched, one.ngram) for one in summary.contamination]
    assert stored == [("crawl", 1, 2, 3), ("crawl", 0, 1, 0)]
