"""Commands that look at answers as a script sees them, against a real gateway."""

import json
from pathlib import Path

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from services.common.errors import ErrorKind
from tests.fakes.gateway.dataset_runs import recorded, stored_run
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused
from tests.fakes.stack.command_line import CommandLine


def shown_row(number: int, *answers: outcome_pb2.RecordedOutcome) -> answer_pb2.SideBySideRow:
    beside = [answer_pb2.SideBySideAnswer(outcome=answer) for answer in answers]
    return answer_pb2.SideBySideRow(
        row_id=f"r{number}", doc_id=number, prompt="Why?", target="so", answers=beside, is_differing=True
    )


async def test_filters_list_answers_and_fill_their_page(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    run = stored_run(harness)
    harness.results.outcomes[run.run_id] = [recorded(at, is_golden=at == 1) for at in range(3)]
    line = ("--id", "r", "--text", "50%", "--min-score", "0.5", "--max-characters", "9", "--golden")
    shown = await proctor("results", run.run_id, *line, "--page-size", "2")
    assert shown.code == 0, shown.err
    assert "request-1" in shown.out
    assert "1 golden" in shown.out
    assert "The next page: --page 2" in shown.out
    chosen = harness.results.outcomes_asked[-1].filter
    assert (chosen.row_id, chosen.text, chosen.min_score) == ("r", "50%", 0.5)
    assert (chosen.max_characters, chosen.HasField("min_characters"), chosen.is_golden) == (9, False, True)
    await proctor("results", run.run_id, "--outcomes")
    assert not harness.results.outcomes_asked[-1].HasField("filter")
    harness.results.outcomes[run.run_id] = []
    both = await proctor("results", run.run_id, "--golden", "--wrong")
    assert (both.code, "exclude each other" in both.err) == (2, True)
    nothing = await proctor("results", run.run_id, "--text", "sorry")
    assert nothing.out.endswith("There are no such answers.\n")


async def test_a_rollout_has_the_number_that_marks_it(harness: GatewayHarness, proctor: CommandLine) -> None:
    run = stored_run(harness)
    twice = [recorded(7), recorded(7)]
    twice[1].outcome.rollout = 1
    harness.results.outcomes[run.run_id] = twice[:1]
    assert "7 #" not in (await proctor("results", run.run_id, "--outcomes")).out
    run.order.rollouts, harness.results.outcomes[run.run_id] = 2, twice
    shown = await proctor("results", run.run_id, "--outcomes")
    assert ("7 #0" in shown.out, "7 #1" in shown.out, "7 #2" in shown.out) == (True, True, False)
    assert "#rollout" in shown.out
    for number in ("0", "1"):
        await proctor("golden", "mark", run.run_id, "7", "--sample", "--rollout", number)
    marked = [key for request in harness.results.answers.marked for key in request.answers]
    assert [(key.sample, key.rollout) for key in marked] == [(7, 0), (7, 1)]


async def test_each_option_about_answers_lists_them(harness: GatewayHarness, proctor: CommandLine) -> None:
    run = stored_run(harness)
    harness.results.outcomes[run.run_id] = [recorded(0)]
    for line in (("--status", "scored"), ("--task", "rows")):
        shown = await proctor("results", run.run_id, *line)
        assert "request-0" in shown.out
    await proctor("results", run.run_id, "--sort", "time", "--descending")
    asked = harness.results.outcomes_asked[-1]
    assert (asked.sort, asked.is_descending) == (results_pb2.OUTCOME_SORT_TIME, True)
    wrong = await proctor("results", run.run_id, "--status", "bogus")
    assert (wrong.code, wrong.err) == (2, "--status bogus: it must be scored, unparsed or failed.\n")


async def test_of_a_long_answer_both_ends_are_shown(harness: GatewayHarness, proctor: CommandLine) -> None:
    run = stored_run(harness)
    long = recorded(0)
    long.outcome.answer.text = f"First {'and ' * 100}last."
    harness.results.outcomes[run.run_id] = [long]
    shown = await proctor("results", run.run_id, "--outcomes")
    assert "First" in shown.out
    assert "last." in shown.out
    assert shown.out.count("and") < 60


async def test_range_that_holds_nothing_is_refused_in_the_words_of_its_options(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    run, other = stored_run(harness), stored_run(harness)
    for command in (("results", run.run_id), ("side-by-side", run.run_id, other.run_id)):
        long = await proctor(*command, "--min-characters", "5", "--max-characters", "3")
        assert (long.code, long.err) == (2, "--min-characters 5 is above --max-characters 3.\n")
        high = await proctor(*command, "--min-score", "0.5", "--max-score", "0")
        assert (high.code, high.err) == (2, "--min-score 0.5 is above --max-score 0.\n")
    assert not harness.results.outcomes_asked
    assert not harness.results.answers.listed


async def test_runs_stand_side_by_side_within_a_hundred_columns(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    first, second = stored_run(harness), stored_run(harness)
    failure = outcome_pb2.Failure(
        failure_class=outcome_pb2.FAILURE_CLASS_TIMEOUT, message="It took too long."
    )
    failed = recorded(
        0, outcome=outcome_pb2.Outcome(failure=failure), status=outcome_pb2.OUTCOME_STATUS_FAILED
    )
    long = recorded(2)
    long.outcome.answer.text = "word " * 500
    missing = shown_row(2, long)
    missing.answers.add()
    harness.results.answers.rows = [
        shown_row(0, recorded(0, is_golden=True, scores={"exact_match": 1.0}), failed),
        shown_row(1, recorded(1), recorded(5)),
        missing,
    ]
    runs = first.run_id, second.run_id
    shown = await proctor("side-by-side", *runs, "--differing", "--page-size", "3", "--text", "é")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0] == f"A  vllm/org/starter  run {first.run_id}"
    for part in (
        'A* "answer 0"  exact_match 1',
        "B  timeout: It took too long.",
        'B  "answer 5"',
        "B  no answer yet",
        'target  "so"',
        "The next page",
    ):
        assert (part in shown.out) == (part != "The next page"), shown.out
    assert max(len(line) for line in lines if not line.startswith(("A", "─", "r"))) <= 100
    # The page was filled by two calls: the gateway's had two rows.
    asked = harness.results.answers.listed
    assert [(each.page_size, each.page_token, each.only_differing) for each in asked] == [
        (3, "", True),
        (1, "2", True),
    ]
    assert asked[0].filter.text == "é"
    document = (await proctor("side-by-side", *runs, "--page-size", "2", "--json")).document
    assert (len(document["rows"]), document["next_page_token"]) == (2, "2")
    one = await proctor("side-by-side", first.run_id)
    assert (one.code, one.err) == (2, "Name 2 to 6 runs.\n")
    harness.results.answers.rows = []
    assert "No row matches." in (await proctor("side-by-side", *runs)).out


async def test_answers_are_marked_by_id_or_number(harness: GatewayHarness, proctor: CommandLine) -> None:
    run = stored_run(harness)
    reported = await proctor("golden", "mark", run.run_id, "r1", "7", "--user", "ann")
    assert (reported.code, reported.out) == (0, f"Run {run.run_id} has 2 golden answers now.\n")
    gone = await proctor("golden", "unmark", run.run_id, "7", "--sample", "--rollout", "1", "--json")
    assert gone.document == {"run_id": run.run_id, "golden_count": 1, "wrong_count": 0}
    marked, unmarked = harness.results.answers.marked[:2]
    assert [key.row_id for key in marked.answers] == ["r1", "7"]
    assert (marked.user, marked.is_golden, unmarked.is_golden) == ("ann", True, False)
    assert list(unmarked.answers) == [answer_pb2.AnswerKey(sample=7, rollout=1)]
    wrong = await proctor("golden", "mark", run.run_id, "r1", "--wrong")
    assert wrong.out == f"Run {run.run_id} has 0 golden answers and 1 marked as wrong now.\n"
    asked = harness.results.answers.marked[2]
    assert (asked.is_marked_wrong, asked.is_golden) == (True, False)
    one = await proctor("golden", "unmark", run.run_id, "r1")
    assert one.out == f"Run {run.run_id} has 1 golden answer now.\n"
    typo = await proctor("golden", "mark", run.run_id, "r1", "--sample")
    assert (typo.code, typo.err) == (2, "r1 is not a number of a sample; without --sample it is an id.\n")
    harness.results.answers.refusal = refused(ErrorKind.INVALID, "ROW_NOT_FOUND", "There is no row r9.")
    refusal = await proctor("golden", "mark", run.run_id, "r9")
    assert (refusal.code != 0, refusal.err) == (True, "There is no row r9.\n")


async def test_golden_answers_are_written_whole_or_not_at_all(
    harness: GatewayHarness, proctor: CommandLine, tmp_path: Path
) -> None:
    run, file = stored_run(harness), tmp_path / "golden.jsonl"
    harness.results.exports.pieces = [b'{"id": "a"}\n', b'{"id": "b"}\n']
    line = ("golden", "export", run.run_id, "--form", "test")
    reported = await proctor(*line, "-o", str(file))
    assert (reported.code, reported.out) == (0, f"{file}: 24 bytes\n")
    assert file.read_bytes() == b"".join(harness.results.exports.pieces)
    [asked] = harness.results.exports.golden_asked
    assert (list(asked.run_ids), asked.form) == ([run.run_id], export_pb2.GOLDEN_FORM_TEST)
    assert "--force replaces it" in (await proctor(*line, "-o", str(file))).err
    assert (await proctor(*line, "-o", "-")).out.encode() == file.read_bytes()
    assert (await proctor("golden", "export", run.run_id, "--form", "tests", "-o", "-")).code == 2
    harness.results.exports.refusal = refused(ErrorKind.CONFLICT, "NO_GOLDEN_ANSWERS", "Mark some first.")
    other = tmp_path / "other.jsonl"
    refusal = await proctor(*line, "-o", str(other))
    assert (refusal.err, other.exists()) == ("Mark some first.\n", False)


async def test_page_of_no_list_is_refused_in_the_words_of_the_option(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    sentence = "page_token is not one that this list gave. Start again without it."
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "INVALID_PAGE_TOKEN", sentence, page_token="x")
    shown = await proctor("runs", "--page", "x")
    assert (shown.code, shown.err) == (2, "--page is not one that this list gave. Start again without it.\n")


async def test_reasoning_is_shown_before_the_answer(harness: GatewayHarness, proctor: CommandLine) -> None:
    run = stored_run(harness)
    answered, unended = recorded(0), recorded(1, status=outcome_pb2.OUTCOME_STATUS_UNPARSED)
    answered.outcome.answer.reasoning = "Perhaps Oslo?"
    unended.outcome.answer.CopyFrom(outcome_pb2.Answer(reasoning="Or Lima?", finish_reason="length"))
    harness.results.outcomes[run.run_id] = [answered, unended]
    shown = await proctor("results", run.run_id, "--outcomes")
    assert shown.out.index("reasoning Perhaps") < shown.out.index("answer 0")
    assert "Or Lima?" in shown.out
    assert "unparsed, ended by" in shown.out
    harness.results.answers.rows = [shown_row(0, answered, unended)]
    beside = await proctor("side-by-side", run.run_id, stored_run(harness).run_id)
    assert "reasoning Perhaps Oslo?" in beside.out
    assert "(unparsed, ended by length)" in beside.out


async def test_each_line_annotates_the_answer_that_is_shown(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    run = stored_run(harness)
    harness.results.outcomes[run.run_id] = [recorded(7)]
    queue = harness.results.annotations
    queue.run_id, queue.queue, queue.labels = run.run_id, [7, 3, 9, 5], ("yes", "no", "not at all")
    lines = "perhaps\nyes very good\n? both read well\nnot at all\nq\n"
    done = await proctor.told(lines, "annotate", run.run_id, "--raters", "1", "--disagreement-first")
    assert done.code == 0, done.err
    assert done.out.endswith("3 answers are annotated.\n")
    assert "answer of sample 7:" in done.out
    said = [(one.sample, one.label, one.comment) for one in queue.said]
    assert said == [(7, "yes", "very good"), (3, "", "both read well"), (9, "not at all", "")]
    assert (queue.asked[0].raters, queue.asked[0].is_disagreement_first) == (1, True)
    assert {one.user for one in queue.said} == {"local"}
    last = await proctor.told("no\n", "annotate", run.run_id, "--json")
    assert json.loads(last.out) == {"annotated": 1}
    assert "No answer is left for you to annotate." in last.err


async def test_annotations_are_listed_over_all_pages_with_the_agreement_of_people(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    run = stored_run(harness)
    queue = harness.results.annotations
    queue.annotations = [
        annotation_pb2.Annotation(sample=at, user=f"person{at}", label="yes" if at else "") for at in range(3)
    ]
    queue.agreement = annotation_pb2.GetAgreementResponse(
        answers=9,
        annotated=3,
        raters=2,
        measure=annotation_pb2.AGREEMENT_MEASURE_COHENS_KAPPA,
        units=3,
        value=0.5,
        ci_low=0.1,
        ci_high=0.9,
    )
    shown = await proctor("annotations", run.run_id)
    assert shown.code == 0, shown.err
    assert "3 of 9 answers are annotated" in shown.out
    assert "Cohen's kappa of 2 people is 0.50 (95 % from 0.10 to 0.90), over 3 answers." in shown.out
    assert [f"person{at}" in shown.out for at in range(3)] == [True] * 3
    assert "cannot tell" in shown.out
    document = json.loads((await proctor("annotations", run.run_id, "--json")).out)
    assert len(document["annotations"]) == 3
