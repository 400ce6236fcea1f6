"""Reasoning of recorded answers through the real service: shown apart, found, left out of differences."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.outcome import Answer
from proctor.values.reasoning.separate import may_have_reasoning
from services.common.postgres import connect_pool
from services.results.postgres import SCHEMA
from tests.fakes.results.answered_runs import answered_run, listed, rows_of, side_by_side
from tests.fakes.results.recorded_run import said
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def test_reasoning_is_shown_apart_and_found(harness: ResultsHarness) -> None:
    outcomes = [
        said(0, "<think>Perhaps Oslo?</think>right"),
        replace(said(1, "right"), result=Answer("right", "stop", reasoning="Perhaps Oslo?")),
        replace(said(2, ""), result=Answer("<think>Perhaps Oslo?", "length")),
        said(3, "right"),
    ]
    plan = await answered_run(harness, rows_of(["?"] * 4, "thought"), outcomes)
    page = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id))
    answers = [one.outcome.answer for one in page.outcomes]
    assert [(one.text, one.reasoning, one.finish_reason) for one in answers] == [
        ("right", "Perhaps Oslo?", "stop"),
        ("right", "Perhaps Oslo?", "stop"),
        ("", "Perhaps Oslo?", "length"),
        ("right", "", "stop"),
    ]
    statuses = [outcome_pb2.OUTCOME_STATUS_SCORED] * 2 + [outcome_pb2.OUTCOME_STATUS_UNPARSED]
    assert [one.status for one in page.outcomes][:3] == statuses
    assert await listed(harness, plan, text="perhaps") == [0, 1, 2]

    other = await answered_run(
        harness,
        rows_of(["?"] * 4, "thought"),
        [
            said(0, " right\n"),
            said(1, "Not Lima?</think>\nright"),
            said(2, "right"),
            said(3, "thought\nLima?\nright"),
        ],
    )
    assert [one.is_differing for one in await side_by_side(harness, [plan, other])] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<think>Oslo?</think>right",
        "\n [THINK]Oslo?",
        "Oslo?\n[/THINK]right",
        "◁think▷Oslo?◁/think▷right",
        "Oslo?◁/think▷right",
        "<|channel|>final<|message|>right",
        "Assistant\n<think>Oslo?",
        "analysisOslo? No.",
        "Oslo?assistantfinalright",
        "Here’s my thought process: Oslo? Here’s my response: right",
        "Thought\nOslo?\nright",
        "Oslo?<unused95>right",
        "Oslo?<\uff5cend\u2581of\u2581thinking\uff5c>right",
        "&lt;think&gt;Oslo?",
        "Oslo?\n&lt;/think&gt;\nright",
        "\\u003cthink\\u003eOslo?",
        "Oslo?\n\\u003c/think\\u003e\nright",
        "right",
        "THE <b right",
    ],
)
async def test_postgres_passes_over_no_text_with_reasoning(harness: ResultsHarness, text: str) -> None:
    async with await connect_pool(harness.postgres.address, schema=SCHEMA) as pool:
        is_marked = await pool.fetchval("SELECT may_hold_reasoning($1)", text)
    assert is_marked >= may_have_reasoning(text)
    assert is_marked is (text not in {"right", "THE <b right"})
