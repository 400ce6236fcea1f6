"""How answers are looked for, paired and named when they are exported, without a store."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from services.results.answers import list_outcomes
from services.results.answers.list_outcomes import ListOutcomes, OutcomeQuery
from services.results.answers.marks import GoldenAnswer, latest_golden_answers
from services.results.answers.outcome_filter import OutcomeFilter
from services.results.answers.show_verdicts import ShowVerdicts
from services.results.answers.side_by_side import (
    MAX_SAME,
    PositionedSample,
    called,
    crowded_digests,
    pair_samples,
    tool_calls,
)
from services.results.answers.sorted_keys_cache import SortedKeysCache
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.run_plan import RunPlan
from tests.fakes.results.memory_answers import MemoryAnswers, NoJudges
from tests.fakes.results.memory_results import MemoryRows, memory_stores
from tests.fakes.results.recorded_run import choice_sample, new_id, plan_of, said, scored

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class TickingClock:
    """A tenth of a second passes with each look."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        self.seconds += 0.1
        return self.seconds


async def said_run(rows: MemoryRows, count: int) -> RunPlan:
    stores, sample_set_id = memory_stores(rows), new_id()
    await stores.sample_sets.stage(sample_set_id, [choice_sample(at, sample_set_id) for at in range(count)])
    await stores.sample_sets.commit(sample_set_id, count)
    plan = (await stores.records.open(plan_of([count], [sample_set_id]), 1)).plan
    await stores.outcomes.record([scored(plan.run_id, said(at, f"answer {at}.")) for at in range(count)])
    return plan


async def listed_in_pages(
    rows: MemoryRows, answers: MemoryAnswers, query: OutcomeQuery
) -> tuple[list[OutcomeKey], int]:
    """What all pages hold, none more than was asked for, and how many there were."""
    stores, calls = memory_stores(rows), 0
    found: list[OutcomeKey] = []
    listing = ListOutcomes(
        stores.records,
        stores.sample_sets,
        stores.outcomes,
        answers,
        ShowVerdicts(stores.records, NoJudges(), answers),
        SortedKeysCache(),
        TickingClock(),
    )
    while True:
        page = await listing.list_page(query)
        assert len(page.outcomes) <= query.page_size
        found, calls = found + [one.scored.key[1:] for one in page.outcomes], calls + 1
        if not page.next_page_token:
            return found, calls
        assert page.next_page_token != query.page_token
        # Of a list in the order of samples it is known how far it was looked through.
        assert bool(page.searched_samples) == (query.sort is None)
        assert page.searched_samples > max((key[0] for key in found), default=-1) or query.sort
        query = replace(query, page_token=page.next_page_token)


async def test_a_call_ends_in_time_and_says_where_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_outcomes, "FIRST_WINDOW", 2)
    monkeypatch.setattr(list_outcomes, "MAX_WINDOW", 8)
    rows = MemoryRows()
    plan, answers = await said_run(rows, 100), MemoryAnswers(rows)
    found, calls = await listed_in_pages(
        rows, answers, OutcomeQuery(plan.run_id, 5, filter=OutcomeFilter(text="ANSWER 99."))
    )
    assert found == [(99, 0)]
    # Each looks at 2, 8, 8 and 8 answers before its time is over.
    assert (calls, answers.scans[:5]) == (4, [2, 8, 8, 8, 2])


@pytest.mark.parametrize("text", ["", "answer"])
async def test_list_begins_at_a_sample_and_its_later_pages_where_they_say(text: str) -> None:
    rows = MemoryRows()
    plan, answers = await said_run(rows, 9), MemoryAnswers(rows)
    query = OutcomeQuery(plan.run_id, 2, filter=OutcomeFilter(text=text), first=(4, 0))
    found, _ = await listed_in_pages(rows, answers, query)
    assert found == [(at, 0) for at in range(4, 9)]


async def test_a_full_page_goes_on_behind_its_last_answer_whatever_is_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(list_outcomes, "WINDOW_BYTES", 1)
    rows = MemoryRows()
    plan, answers = await said_run(rows, 9), MemoryAnswers(rows)
    found, _ = await listed_in_pages(
        rows, answers, OutcomeQuery(plan.run_id, 2, filter=OutcomeFilter(text="answer"))
    )
    assert found == [(at, 0) for at in range(9)]


def positioned(*rows: tuple[int, str, str]) -> list[PositionedSample]:
    return [PositionedSample(position, digest.encode(), name) for position, digest, name in rows]


def test_rows_are_paired_by_position_then_name_then_order_and_once_each() -> None:
    first = positioned((0, "d", "a"), (1, "d", "b"), (2, "d", "c"), (3, "e", "x"), (4, "d", "z"))
    other = positioned((0, "d", "b"), (2, "d", "c"), (3, "e", "x"), (5, "d", "q"))
    assert pair_samples(first, other) == {2: 2, 3: 3, 1: 0, 0: 5}
    assert pair_samples(first, []) == {}


def test_only_samples_that_a_set_has_very_often_are_crowded() -> None:
    rows = positioned(*((at, "often", f"{at}") for at in range(MAX_SAME + 1)), (9999, "once", "x"))
    usual = positioned(*((at, "usual", f"{at}") for at in range(MAX_SAME)))
    assert crowded_digests(usual, rows) == crowded_digests(rows, usual) == {b"often"}


def marked(sample: int, digest: str, name: str, seconds: int = 0) -> GoldenAnswer:
    return GoldenAnswer((sample, 0), NOON + timedelta(seconds=seconds), digest.encode(), name)


def test_of_a_row_the_later_mark_counts_and_ids_are_unique() -> None:
    answers = [
        (0, marked(0, "d0", "a", 5)),
        (0, marked(1, "d1", "b")),
        (1, marked(0, "d0", "a", 4)),
        (1, marked(1, "d9", "b")),
        (1, marked(2, "d8", "b")),
        (1, marked(3, "d7", "b-2")),
        (1, marked(4, "d1", "b", 1)),
    ]
    chosen = [(one.run, one.key[0], one.row_id) for one in latest_golden_answers(answers)]
    assert chosen == [(0, 0, "a"), (1, 1, "b"), (1, 2, "b-3"), (1, 3, "b-2"), (1, 4, "b-4")]


def test_an_id_that_gets_a_number_is_no_longer_than_ids_may_be() -> None:
    answers = [(0, marked(at, f"d{at}", "é" * 512)) for at in range(12)]
    ids = [one.row_id for one in latest_golden_answers(answers)]
    assert len(set(ids)) == 12
    assert {len(row_id) for row_id in ids} == {512}


@pytest.mark.parametrize(
    "body", ["", "{", "[]", '{"choices": []}', '{"choices": [{"message": null}]}', "null"]
)
def test_what_is_no_answer_of_the_protocol_calls_no_tool(body: str) -> None:
    assert (tool_calls(body), called(body)) == ([], "")


def test_calls_are_the_same_whatever_they_are_named() -> None:
    def body(call_id: str) -> str:
        function = {"name": "f", "arguments": "{}"}
        return json.dumps({"choices": [{"message": {"tool_calls": [{"id": call_id, "function": function}]}}]})

    assert called(body("a")) == called(body("b")) != ""
