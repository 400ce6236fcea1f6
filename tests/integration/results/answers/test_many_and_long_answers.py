"""Answers that are looked at cost what is shown of them, however many there are and however long they are."""

from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest
import pytest_asyncio

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from services.results.answers import postgres as postgres_answers
from services.results.answers import postgres as postgres_exports
from services.results.answers.side_by_side import MAX_SAME
from services.results.outcomes import page_bytes
from services.results.outcomes.outcome import ScoredOutcome
from services.results.outcomes.postgres import scored_outcome
from tests.fakes.refusals import refusal_of
from tests.fakes.results.answered_runs import answered_run, listed, rows_of, side_by_side, texts
from tests.fakes.results.recorded_run import said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@pytest.mark.thorough
async def test_rows_of_a_sample_that_is_there_very_often_are_paired_by_their_positions(
    harness: ResultsHarness,
) -> None:
    count = MAX_SAME + 5
    prompts = ["the same each time"] * count + ["another"]
    first = await answered_run(harness, rows_of(prompts, "f"), [said(at, "a") for at in range(count + 1)])
    second = await answered_run(harness, rows_of(prompts[1:], "s"), [said(at, "b") for at in range(count)])
    rows = await side_by_side(harness, [first, second])
    assert [one.doc_id for one in rows] == [*range(count - 1), count]
    assert all(texts(one) == ["a", "b"] for one in rows)


async def test_sets_without_a_common_sample_are_distinguished_at_once(harness: ResultsHarness) -> None:
    """All compared with all, this would take minutes."""
    async with harness.database() as database:
        plans = [await answered_run(harness, rows_of([f"{salt}"], salt), [said(0, "a")]) for salt in "xy"]
        for plan in plans:
            await database.execute(
                "INSERT INTO samples"
                " (sample_set_id, position, doc_id, digest, prompt_text, choices, target_texts, cluster)"
                " SELECT $1::uuid, n, n, sha256(($1::text || n)::bytea), 'p', '{}', '{}', ''"
                " FROM generate_series(1, 100000) AS n",
                plan.tasks[0].sample_set_id,
            )
    asked = answer_pb2.ListSideBySideRequest(run_ids=[plan.run_id for plan in plans])
    # The deadline is that of the call, so that the work of the server ends with it.
    assert (await refusal_of(harness.answers.ListSideBySide(asked, timeout=60)))[0] == "NO_COMMON_SAMPLES"


async def test_rows_without_ids_are_found_and_marked_by_their_numbers(harness: ResultsHarness) -> None:
    samples = [replace(one, row_id="") for one in rows_of([f"unnamed {at}" for at in range(12)])]
    plan = await answered_run(harness, samples, [said(at, "a") for at in range(12)])
    assert await listed(harness, plan, row_id="11") == [11]
    await harness.answers.MarkAnswers(
        answer_pb2.MarkAnswersRequest(
            run_id=plan.run_id, is_golden=True, answers=[answer_pb2.AnswerKey(row_id="7")]
        )
    )
    assert await listed(harness, plan, is_golden=True) == [7]


async def test_of_long_answers_no_more_are_read_than_fit_into_a_message(
    harness: ResultsHarness,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole pages of them would fill the memory before they are cut."""
    monkeypatch.setattr(page_bytes, "MAX_BYTES_PER_PAGE", 500_000)
    monkeypatch.setattr(postgres_exports, "CHUNK_BYTES", 300_000)
    samples = rows_of([f"long answer {at}" for at in range(12)], "long")
    plans = [
        await answered_run(harness, samples, [said(at, letter * 100_000) for at in range(12)])
        for letter in "ab"
    ]
    read: list[int] = []

    def counted(run_id: str, row: asyncpg.Record) -> ScoredOutcome:
        read.append(row["sample"])
        return scored_outcome(run_id, row)

    monkeypatch.setattr(postgres_answers, "scored_outcome", counted)
    monkeypatch.setattr(postgres_exports, "scored_outcome", counted)
    request = results_pb2.ListOutcomesRequest(run_id=plans[0].run_id, page_size=1000)
    page = await harness.public.ListOutcomes(request)
    assert (len(page.outcomes), len(read), bool(page.next_page_token)) == (2, 2, True)
    read.clear()
    beside = await harness.answers.ListSideBySide(
        answer_pb2.ListSideBySideRequest(run_ids=[plan.run_id for plan in plans], page_size=200)
    )
    assert (len(beside.rows), len(read), bool(beside.next_page_token)) == (1, 2, True)
    assert len(await side_by_side(harness, plans)) == 12
    read.clear()
    lm_eval = harness.exports.ExportRun(
        export_pb2.ExportRunRequest(run_id=plans[0].run_id, format=export_pb2.EXPORT_FORMAT_LM_EVAL)
    )
    body = b"".join([piece.content async for piece in lm_eval])
    assert (body.count(b"\n"), read) == (12, list(range(12)))
