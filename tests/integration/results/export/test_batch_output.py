"""The files of a batch, through the real service: a line per request, each in exactly one of the two."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from openai.types.chat import ChatCompletion
from openai.types.completion import Completion

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import Answer, FailureClass, Outcome
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.scoring import OutputType, TaskScoring
from proctor.values.usage import Timing, TokenUsage
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.eventually import eventually
from tests.fakes.results.exported_texts import NASTY_TEXTS
from tests.fakes.results.recorded_run import batch, failed, plan_of
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNSCORED = TaskScoring(OutputType.GENERATE_UNTIL, ())
FACTS = RunFacts("file-1", model='vllm/a "quoted" model')
BODY = {"id": "chatcmpl-7", "choices": [{"message": {"tool_calls": []}}, {"text": "a\nb"}], "model": "theirs"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


def chat(at: int, row_id: str) -> StoredSample:
    turns = (ChatMessage("system", "Answer."), ChatMessage("user", f"Question {at}"))
    digest = at.to_bytes(32, "big")
    return StoredSample(at, at, digest, Prompt(None, turns), ScoringTarget(), "", "", row_id)


def completed(at: int, text: str, *, body: str = "", finish_reason: str = "stop") -> Outcome:
    answer = Answer(text, finish_reason, (), body)
    return Outcome(at, 0, at, 1, answer, TokenUsage(7, 5, 3, 2), Timing(0.5))


async def ran(
    harness: ResultsHarness,
    samples: Sequence[StoredSample],
    outcomes: Sequence[Outcome],
    *,
    is_closed: bool = True,
) -> RunPlan:
    """A run of one task without metrics, closed as it is."""
    ordered = plan_of([len(samples)], [await harness.store(samples)])
    tasks = (replace(ordered.tasks[0], task="rows", scoring=UNSCORED),)
    plan = await harness.open(replace(ordered, tasks=tasks, facts=FACTS))
    await harness.send(batch(plan.run_id, outcomes))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == len(outcomes)

    await eventually(all_recorded, "everything is recorded")
    if is_closed:
        await harness.records.CloseRun(
            run_record_pb2.CloseRunRequest(
                run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_CANCELLED, allow_partial=True
            )
        )
    return plan


async def file_of(
    harness: ResultsHarness, plan: RunPlan, word: str, code: str = "", message: str = ""
) -> bytes:
    request = export_pb2.ExportRunRequest(
        run_id=plan.run_id,
        format=export_pb2.ExportFormat.Value(f"EXPORT_FORMAT_BATCH_{word}"),
        missing_code=code,
        missing_message=message,
    )
    return b"".join([piece.content async for piece in harness.exports.ExportRun(request)])


def lines_of(file: bytes) -> list[dict[str, Any]]:
    assert not file or file.endswith(b"\n")
    return [json.loads(line) for line in file.split(b"\n")[:-1]]


async def test_an_answer_is_a_completion_as_the_official_client_reads_it(harness: ResultsHarness) -> None:
    text = replace(chat(1, "second"), prompt=Prompt("Once upon"))
    plan = await ran(harness, [chat(0, "first"), text], [completed(0, "Yes."), completed(1, " a time")])
    first, second = lines_of(await file_of(harness, plan, "OUTPUT"))

    assert set(first) == {"id", "custom_id", "response", "error"}
    assert str(first["id"]).startswith("batch_req_")
    assert (first["custom_id"], first["error"]) == ("first", None)
    response = first["response"]
    assert isinstance(response, dict)
    assert (response["status_code"], bool(response["request_id"])) == (200, True)
    completion = ChatCompletion.model_validate(response["body"], strict=True)
    assert completion.model == FACTS.model
    listed = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id))
    assert completion.created == listed.outcomes[0].recorded_at.seconds
    [choice] = completion.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == (
        "assistant",
        "Yes.",
        "stop",
    )
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.total_tokens) == (7, 12)
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == 3

    response = second["response"]
    assert isinstance(response, dict)
    assert Completion.model_validate(response["body"], strict=True).choices[0].text == " a time"


async def test_a_body_that_was_kept_is_handed_on_in_one_line(harness: ResultsHarness) -> None:
    outcomes = [completed(0, "", body=json.dumps(BODY, indent=2)), completed(1, "said", body="no JSON")]
    plan = await ran(harness, [chat(0, "a"), chat(1, "b")], outcomes)
    first, second = lines_of(await file_of(harness, plan, "OUTPUT"))
    assert first["response"]["body"] == BODY
    assert second["response"]["body"]["choices"][0]["message"]["content"] == "said"


async def test_failures_and_rows_without_an_outcome_are_errors_in_the_order_of_the_input(
    harness: ResultsHarness,
) -> None:
    samples = [chat(at, f"row-{at}") for at in range(300)]
    refused = failed(7, FailureClass.REFUSED)
    outcomes = [completed(at, str(at)) for at in range(0, 250, 2)] + [refused]
    plan = await ran(harness, samples, outcomes)
    answers = lines_of(await file_of(harness, plan, "OUTPUT"))
    errors = lines_of(await file_of(harness, plan, "ERRORS", "batch_expired", 'Too "late".'))

    assert [line["custom_id"] for line in answers] == [f"row-{at}" for at in range(0, 250, 2)]
    missing = [f"row-{at}" for at in range(300) if at % 2 or at >= 250]
    assert [line["custom_id"] for line in errors] == missing
    assert errors[3]["error"] == {"code": "refused", "message": "It did not work."}
    assert {json.dumps(line["error"]) for line in errors if line["custom_id"] != "row-7"} == {
        json.dumps({"code": "batch_expired", "message": 'Too "late".'})
    }
    assert all(line["response"] is None for line in errors)
    ids = [line["id"] for line in answers + errors]
    assert len(set(ids)) == 300


async def test_a_file_that_is_made_twice_is_the_same(harness: ResultsHarness) -> None:
    outcomes = [completed(0, "one"), failed(1)]
    plan = await ran(harness, [chat(at, f"r{at}") for at in range(3)], outcomes)
    for word in ("OUTPUT", "ERRORS"):
        assert await file_of(harness, plan, word) == await file_of(harness, plan, word)


async def test_texts_come_back_as_they_were(harness: ResultsHarness) -> None:
    samples = [chat(at, text) for at, text in enumerate(NASTY_TEXTS)]
    plan = await ran(harness, samples, [completed(at, text) for at, text in enumerate(NASTY_TEXTS)])
    file = await file_of(harness, plan, "OUTPUT")
    lines = lines_of(file)
    # The client's own iter_lines breaks lines as this does.
    assert [json.loads(line) for line in file.decode().splitlines()] == lines
    # Without an id a row goes by its number.
    assert [line["custom_id"] for line in lines] == [text or str(at) for at, text in enumerate(NASTY_TEXTS)]
    contents = [line["response"]["body"]["choices"][0]["message"]["content"] for line in lines]
    assert contents == list(NASTY_TEXTS)


async def test_a_run_that_answered_all_has_an_empty_error_file(harness: ResultsHarness) -> None:
    plan = await ran(harness, [chat(0, "only")], [completed(0, "yes", finish_reason="")])
    assert await file_of(harness, plan, "ERRORS") == b""
    [line] = lines_of(await file_of(harness, plan, "OUTPUT"))
    assert line["response"]["body"]["choices"][0]["finish_reason"] is None


async def test_reasoning_is_apart_from_the_content(harness: ResultsHarness) -> None:
    said = Answer("Bergen", "stop", reasoning="Oslo?")
    outcomes = [
        completed(0, "<think>Oslo?</think>Bergen"),
        replace(completed(1, ""), result=said),
        replace(completed(2, ""), result=said),
    ]
    text = replace(chat(2, "c"), prompt=Prompt("The town is"))
    plan = await ran(harness, [chat(0, "a"), chat(1, "b"), text], outcomes)
    *chats, completion = (
        line["response"]["body"]["choices"][0] for line in lines_of(await file_of(harness, plan, "OUTPUT"))
    )
    for choice in chats:
        assert (choice["message"]["content"], choice["message"]["reasoning_content"]) == ("Bergen", "Oslo?")
    assert (completion["text"], completion["reasoning_content"]) == ("Bergen", "Oslo?")
