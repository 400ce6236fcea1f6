"""Answers as they are looked at through the real service: filtered, side by side, marked, exported."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import Answer, Outcome
from proctor.values.sample import ChatMessage, Prompt
from services.results.answers import list_side_by_side
from services.results.runs.run_plan import RunPlan
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, listed, row, rows_of, side_by_side, texts
from tests.fakes.results.recorded_run import choice_sample, failed, new_id, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def test_texts_are_found_in_prompts_chats_and_answers_whatever_their_letters_are(
    harness: ResultsHarness,
) -> None:
    chat = Prompt(messages=(ChatMessage("system", "Sei kurz."), ChatMessage("user", "Wo ist die STRASSE?")))
    samples = rows_of(["100 % sure_of", "Ça va, ÉLAN?", chat, "back\\slash 'quote'", "日本語の文", "plain"])
    said_of = ["yes", "no", "In der Stadt", "a\nb", "はい", "100 per cent"]
    plan = await answered_run(harness, samples, [said(at, text) for at, text in enumerate(said_of)])
    for part, expected in {
        "%": [0],
        "e_o": [0],
        "100 ": [0, 5],
        "élan": [1],
        "straße": [2],
        "stadt": [2],
        "user": [],  # roles are not texts
        "k\\s": [3],
        "'QUOTE": [3],
        "A\nB": [3],
        "本語": [4],
        "は": [4],
        "": [0, 1, 2, 3, 4, 5],
        "nowhere": [],
    }.items():
        assert await listed(harness, plan, text=part) == expected, part
    assert await listed(harness, plan, row_id="ROW-3") == [3]
    assert await listed(harness, plan, row_id="%") == []
    assert await listed(harness, plan, row_id="row", text="100", max_characters=3) == [0]


async def test_texts_are_found_in_all_that_an_answer_says(harness: ResultsHarness) -> None:
    def answer(at: int, text: str, *choices: object, **more: object) -> Outcome:
        body = json.dumps({"id": "chatcmpl-1", "choices": choices, **more}, ensure_ascii=False)
        return Outcome(at, 0, 0, 1, Answer(text, "stop", body_json=body))

    function = {"name": "find_town", "arguments": '{"country": "CÔTE d’Ivoire"}'}
    call = {"id": "call_7", "type": "function", "function": function}
    first, second = ({"message": {"role": "assistant", "content": text}} for text in ("first", "Zweite"))
    parts = [{"type": "text", "text": "in parts"}]
    outcomes = [
        answer(0, "first", first, second, usage={"prompt_tokens": 1}),
        answer(1, "", {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}),
        answer(2, "so", {"message": {"content": "so", "reasoning_content": "Hmm,\x00\\u0000 wait"}}),
        answer(3, "", {"message": {"content": parts, "refusal": "I cannot", "reasoning": "bad?"}}),
        answer(4, "", {"text": "once"}, {"text": "upon"}, {"text": 7}),
        replace(answer(5, "odd"), result=Answer("odd", "stop", body_json="[no object")),
    ]
    plan = await answered_run(harness, rows_of(["?"] * len(outcomes), "said"), outcomes)
    for part, expected in {
        "zweite": [0],
        "find_town": [1],
        "côte d’ivoire": [1],
        "hmm,": [2],
        "wait": [2],
        "IN PARTS": [3],
        "cannot": [3],
        "bad?": [3],
        "upon": [4],
        "odd": [5],
        # What stands around it is not said.
        "assistant": [],
        "call_7": [],
        "chatcmpl": [],
        "tool_calls": [],
        "no object": [],
    }.items():
        assert await listed(harness, plan, text=part) == expected, part


async def test_status_score_and_length_choose_together(harness: ResultsHarness) -> None:
    samples = rows_of([f"question {at}" for at in range(6)], "s")
    outcomes = [
        said(0, "right"),
        said(1, "wrong"),
        said(2, "ééééé"),
        said(3, ""),
        failed(4),
        said(5, "right"),
    ]
    plan = await answered_run(harness, samples, outcomes)
    assert await listed(harness, plan, min_score=0.5) == [0, 5]
    assert await listed(harness, plan, metric="exact_match", max_score=0.5) == [1, 2, 3]
    assert await listed(harness, plan, min_characters=5, max_characters=5) == [0, 1, 2, 5]
    assert await listed(harness, plan, max_characters=4) == [3]  # what failed has no length
    assert await listed(harness, plan, status=3, text="question") == [4]
    assert await listed(harness, plan, status=3, min_characters=0) == []

    async def refused(**wanted: Any) -> tuple[str, str]:
        chosen = results_pb2.OutcomeFilter(**wanted)
        request = results_pb2.ListOutcomesRequest(run_id=plan.run_id, filter=chosen)
        return await refusal_of(harness.public.ListOutcomes(request))

    reason, sentence = await refused(metric="rouge", min_score=0)
    assert (reason, sentence) == ("UNKNOWN_METRIC", "No metric 'rouge' here. Supported: exact_match.")
    assert (await refused(min_score=2, max_score=1))[0] == "INVALID_PARAMETER"
    assert (await refused(min_characters=-1))[0] == "INVALID_PARAMETER"
    assert (await refused(text="a\x00b"))[0] == "INVALID_PARAMETER"
    assert (await refused(min_score=float("nan")))[0] == "INVALID_PARAMETER"


async def test_failures_of_an_epoch_before_match_nothing(harness: ResultsHarness) -> None:
    plan = await answered_run(harness, rows_of(["a", "b"], "e"), [said(0, "right"), failed(1)])
    assert await listed(harness, plan, status=3, row_id="e-") == [1]
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, allow_partial=True)
    )
    await harness.open(plan, epoch=2)
    assert await listed(harness, plan, row_id="e-") == [0]


async def test_rows_of_several_runs_stand_side_by_side_and_only_those_that_differ(
    harness: ResultsHarness,
) -> None:
    samples = rows_of([f"question {at}" for at in range(5)], "q")
    first = await answered_run(harness, samples, [said(at, f"answer {at}") for at in range(5)])
    changed = [said(0, " answer 0\n"), said(1, "other"), failed(2), said(3, "answer 3")]
    second = await answered_run(harness, samples, changed)
    rows = await side_by_side(harness, [first, second])
    assert [(one.row_id, one.prompt, one.target) for one in rows[:1]] == [("q-0", "question 0", "right")]
    assert [texts(one) for one in rows] == [
        ["answer 0", " answer 0\n"],
        ["answer 1", "other"],
        ["answer 2", None],
        ["answer 3", "answer 3"],
        ["answer 4", None],
    ]
    assert [one.is_differing for one in rows] == [False, True, False, False, False]
    assert rows[2].answers[1].outcome.status == outcome_pb2.OUTCOME_STATUS_FAILED
    assert (rows[4].answers[1].HasField("outcome"), rows[0].answers[0].outcome.prompt) == (False, "")
    differing = await side_by_side(harness, [first, second], only_differing=True)
    assert [one.row_id for one in differing] == ["q-1"]
    wanted = results_pb2.OutcomeFilter(text="OTHER")
    assert [one.row_id for one in await side_by_side(harness, [second, first], filter=wanted)] == ["q-1"]
    wanted = results_pb2.OutcomeFilter(row_id="-3")
    assert [one.row_id for one in await side_by_side(harness, [first, second], filter=wanted)] == ["q-3"]


async def test_rows_of_other_files_are_paired_by_what_is_asked_and_by_their_ids_where_that_repeats(
    harness: ResultsHarness,
) -> None:
    asked = ["twice", "once", "twice", "only here"]
    first_rows = [
        row(at, Prompt(text), row_id) for at, (text, row_id) in enumerate(zip(asked, "abcd", strict=True))
    ]
    other = [("only there", "x"), ("twice", "c"), ("once", "y"), ("twice", "z"), ("twice", "w")]
    other_rows = [row(at, Prompt(text), row_id) for at, (text, row_id) in enumerate(other)]
    first = await answered_run(harness, first_rows, [said(at, f"first {at}") for at in range(4)])
    second = await answered_run(harness, other_rows, [said(at, f"second {at}") for at in range(5)])
    rows = await side_by_side(harness, [first, second], page_size=1)
    assert [(one.row_id, texts(one)) for one in rows] == [
        ("a", ["first 0", "second 3"]),
        ("b", ["first 1", "second 2"]),
        ("c", ["first 2", "second 1"]),
    ]


async def test_answers_that_only_call_tools_differ_by_what_they_call(harness: ResultsHarness) -> None:
    def calling(at: int, call_id: str, arguments: str) -> Outcome:
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}
        body = {"choices": [{"message": {"content": None, "tool_calls": [call]}}], "nul": "\x00"}
        return Outcome(at, 0, 0, 1, Answer("", "tool_calls", body_json=json.dumps(body)))

    samples = rows_of(["tools a", "tools b"], "t")
    first = await answered_run(harness, samples, [calling(0, "c1", "1"), calling(1, "c2", "1")])
    second = await answered_run(harness, samples, [calling(0, "c3", "1"), calling(1, "c4", "2")])
    rows = await side_by_side(harness, [first, second])
    assert [one.is_differing for one in rows] == [False, True]


async def test_what_cannot_stand_side_by_side_is_refused(harness: ResultsHarness) -> None:
    first = await answered_run(harness, rows_of(["here"], "h"), [said(0, "a")])
    other = await answered_run(harness, rows_of(["there"], "h"), [said(0, "a")])
    several = await harness.open_run_of(1, 1)

    async def refused(*plans: RunPlan, **asked: Any) -> str:
        request = answer_pb2.ListSideBySideRequest(run_ids=[plan.run_id for plan in plans], **asked)
        return (await refusal_of(harness.answers.ListSideBySide(request)))[0]

    assert await refused(first, other) == "NO_COMMON_SAMPLES"
    assert await refused(first) == "INVALID_PARAMETER"
    assert await refused(first, first) == "INVALID_PARAMETER"
    assert await refused(first, several) == "INVALID_PARAMETER"
    assert await refused(first, other, page_size=201) == "INVALID_PARAMETER"
    assert await refused(first, plan_of([1])) == "RUN_NOT_FOUND"
    wanted = results_pb2.OutcomeFilter(metric="nothing")
    second = await answered_run(harness, rows_of(["here"], "h"), [said(0, "b")])
    assert await refused(first, second, filter=wanted) == "UNKNOWN_METRIC"


async def mark(
    harness: ResultsHarness,
    plan: RunPlan,
    *keys: int | str,
    is_golden: bool = True,
    rollout: int = 0,
) -> int:
    named = [
        answer_pb2.AnswerKey(row_id=key, rollout=rollout)
        if isinstance(key, str)
        else answer_pb2.AnswerKey(sample=key, rollout=rollout)
        for key in keys
    ]
    request = answer_pb2.MarkAnswersRequest(
        run_id=plan.run_id, answers=named, is_golden=is_golden, user="ann"
    )
    return (await harness.answers.MarkAnswers(request)).golden_count


async def test_answers_are_marked_all_or_none_and_again_without_harm(harness: ResultsHarness) -> None:
    samples = rows_of([f"mark {at}" for at in range(4)], "m")
    plan = await answered_run(harness, samples, [said(0, "a"), said(1, "b"), failed(2)])
    assert await mark(harness, plan, 0) == 1
    assert await mark(harness, plan, 0, 0, "m-1") == 2
    reasons = {(1, 2): "OUTCOME_IS_FAILURE", (3,): "OUTCOME_NOT_FOUND", (0, "m-9"): "ROW_NOT_FOUND"}
    for keys, reason in reasons.items():
        assert (await refusal_of(mark(harness, plan, *keys)))[0] == reason
    assert await mark(harness, plan) == 2
    assert await listed(harness, plan, is_golden=True) == [0, 1]
    assert await listed(harness, plan, is_golden=True, text="MARK 1") == [1]
    assert await mark(harness, plan, 0, is_golden=False) == 1
    assert await mark(harness, plan, 0, is_golden=False) == 1
    page = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id))
    assert [one.is_golden for one in page.outcomes] == [False, True, False]
    assert (await refusal_of(mark(harness, plan, *range(1001))))[0] == "INVALID_PARAMETER"
    assert (await refusal_of(mark(harness, plan_of([1]), 0)))[0] == "RUN_NOT_FOUND"
    await harness.records.DeleteRunRecord(run_record_pb2.DeleteRunRecordRequest(run_id=plan.run_id))
    async with harness.database() as database:
        assert await database.fetchval("SELECT count(*) FROM marks WHERE run_id = $1", plan.run_id) == 0


async def mark_changes(harness: ResultsHarness, plan: RunPlan, page_size: int) -> list[tuple[int, bool, str]]:
    """All of them, by pages of a size."""
    found: list[tuple[int, bool, str]] = []
    token = ""
    while True:
        request = answer_pb2.ListMarkChangesRequest(run_id=plan.run_id, page_size=page_size, page_token=token)
        page = await harness.answers.ListMarkChanges(request)
        assert len(page.changes) <= page_size
        found += [(change.sample, change.is_golden, change.user) for change in page.changes]
        token = page.next_page_token
        if not token:
            return found


async def test_who_marked_and_who_removed_a_mark_is_recorded_once_and_goes_with_the_run(
    harness: ResultsHarness,
) -> None:
    samples = rows_of([f"changed {at}" for at in range(3)], "c")
    plan = await answered_run(harness, samples, [said(0, "a"), said(1, "b"), failed(2)])
    assert await mark_changes(harness, plan, 1) == []
    await mark(harness, plan, 0, 1)
    await mark(harness, plan, 0, 1)
    assert (await refusal_of(mark(harness, plan, 2)))[0] == "OUTCOME_IS_FAILURE"
    request = answer_pb2.MarkAnswersRequest(
        run_id=plan.run_id, answers=[answer_pb2.AnswerKey(sample=1)], user="eve"
    )
    for _ in range(2):
        await harness.answers.MarkAnswers(request)
    expected = [(1, False, "eve"), (1, True, "ann"), (0, True, "ann")]
    for page_size in (1, 2, 3, 500):
        assert await mark_changes(harness, plan, page_size) == expected
    unknown = mark_changes(harness, plan_of([1]), 1)
    assert (await refusal_of(unknown))[0] == "RUN_NOT_FOUND"
    await harness.records.DeleteRunRecord(run_record_pb2.DeleteRunRecordRequest(run_id=plan.run_id))
    async with harness.database() as database:
        rows = await database.fetchval("SELECT count(*) FROM mark_changes WHERE run_id = $1", plan.run_id)
    assert rows == 0


async def golden_file(harness: ResultsHarness, plans: Sequence[RunPlan], form: str) -> list[dict[str, Any]]:
    request = export_pb2.ExportGoldenAnswersRequest(
        run_ids=[plan.run_id for plan in plans], form=export_pb2.GoldenForm.Value(f"GOLDEN_FORM_{form}")
    )
    pieces = [piece async for piece in harness.exports.ExportGoldenAnswers(request)]
    assert pieces[0].file_name == f"golden_{form.lower()}.jsonl"
    return [json.loads(line) for line in b"".join(piece.content for piece in pieces).splitlines()]


async def test_golden_answers_become_training_and_test_data_with_each_row_once(
    harness: ResultsHarness,
) -> None:
    parts = [{"type": "text", "text": "Look"}]
    turns = (
        ChatMessage("system", "Be brief.", '{"name":"boss"}'),
        ChatMessage("user", "Look", json.dumps({"content": parts})),
    )
    samples = rows_of(["golden one", Prompt(messages=turns)], "g")
    first = await answered_run(harness, samples, [said(0, "one"), said(1, "two é")])
    # The same first row, answered again, and another row of the same id.
    others = [samples[0], row(1, Prompt("golden other"), "g-1")]
    second = await answered_run(harness, others, [said(0, "later"), said(1, "three")])
    assert (await refusal_of(golden_file(harness, [first], "TEST")))[0] == "NO_GOLDEN_ANSWERS"
    await mark(harness, first, 0, 1)
    await mark(harness, second, 0, 1)
    asked = [{"role": "system", "content": "Be brief.", "name": "boss"}, {"role": "user", "content": parts}]
    assert await golden_file(harness, [first, second], "TEST") == [
        {"id": "g-1", "messages": asked, "target": "two é"},
        {"id": "g-0", "prompt": "golden one", "target": "later"},
        {"id": "g-1-2", "prompt": "golden other", "target": "three"},
    ]
    assert await golden_file(harness, [first], "TRAINING") == [
        {
            "messages": [
                {"role": "user", "content": "golden one"},
                {"role": "assistant", "content": "one"},
            ]
        },
        {"messages": [*asked, {"role": "assistant", "content": "two é"}]},
    ]
    unset = export_pb2.ExportGoldenAnswersRequest(run_ids=[first.run_id])

    async def exported() -> None:
        async for _ in harness.exports.ExportGoldenAnswers(unset):
            pass

    assert (await refusal_of(exported()))[0] == "INVALID_PARAMETER"


async def test_a_filter_that_matches_little_of_much_ends_its_calls_and_comes_to_the_end(
    harness: ResultsHarness,
) -> None:
    """Rows are put in behind the service: so many would take it a while."""
    count = 60_000
    plan = await answered_run(harness, [choice_sample(0, new_id())], [])
    async with harness.database() as database:
        sample_set_id = plan.tasks[0].sample_set_id
        await database.execute(
            "INSERT INTO samples"
            " (sample_set_id, position, doc_id, digest, prompt_text, choices, target_texts, cluster, row_id)"
            " SELECT $1, n, n, sha256(n::text::bytea), repeat('Some words of a prompt. ', 20) || n, '{}',"
            " '{right}', '', 'id-' || n FROM generate_series(1, $2) AS n",
            sample_set_id,
            count - 1,
        )
        await database.execute("UPDATE run_tasks SET sample_count = $2 WHERE run_id = $1", plan.run_id, count)
        await database.execute(
            "INSERT INTO outcomes (run_id, sample, rollout, task_index, shard, epoch, attempt, status,"
            " failure_message, answer_text, finish_reason, choices, prediction, scores,"
            " prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, total_seconds)"
            " SELECT $1, n, 0, 0, 0, 1, 1, 'scored', '', repeat('An answer. ', 20) || n, 'stop', '[]', '',"
            " '{\"exact_match\": 0.0}', 1, 1, 0, 0, 0.1 FROM generate_series(0, $2 - 1) AS n",
            plan.run_id,
            count,
        )
        # As Postgres does by itself within a minute; plans are kept that were made for a few rows.
        await database.execute("ANALYZE")
    wanted = f"ANSWER. {count - 1}"
    assert await listed(harness, plan, text=wanted) == [count - 1]
    assert await listed(harness, plan, min_score=0.5) == []
    assert await mark(harness, plan, 7, count - 2) == 2
    assert await listed(harness, plan, is_golden=True) == [7, count - 2]
    other = await harness.open(replace(plan, run_id=new_id()))
    rows = await side_by_side(harness, [plan, other], 200, only_differing=True)
    assert rows == []


async def test_long_texts_are_looked_through_a_few_at_a_time(
    harness: ResultsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_side_by_side, "WINDOW_BYTES", 1)
    samples = rows_of([f"long {at}" for at in range(9)], "l")
    first = await answered_run(harness, samples, [said(at, f"{at}") for at in range(9)])
    second = await answered_run(harness, samples, [said(at, f"-{at}") for at in range(0, 9, 2)])
    wanted = results_pb2.OutcomeFilter(text="-")
    rows = await side_by_side(harness, [first, second], filter=wanted)
    assert [one.doc_id for one in rows] == [0, 2, 4, 6, 8]
