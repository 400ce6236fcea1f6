"""The form of prompts in the message of a shard."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from proctor.v1 import run_pb2, sample_pb2, work_messages_pb2
from proctor.values.generation import GenerationParams
from proctor.values.run import RunId
from proctor.values.scoring import OutputType, PromptForm, ScoringMethod
from services.common.clock import SystemClock
from services.scheduler.dispatch.nats import NatsShardStream, SampleMessages
from services.scheduler.planning.rendered_samples import RenderedSamples
from services.scheduler.planning.shard import Shard
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.orders.run_order import RunOrder
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY

CHOICE, TEXT = OutputType.MULTIPLE_CHOICE, OutputType.GENERATE_UNTIL


class Samples:
    async def read_samples(self, sample_set_id: str, positions: Sequence[int]) -> Sequence[sample_pb2.Sample]:  # noqa: ARG002  # the port's signature
        prompt = sample_pb2.Prompt(text="Yes?")
        return [sample_pb2.Sample(position=at, prompt=prompt, choices=[" yes"]) for at in positions]


def task_of(output_type: OutputType) -> PlannedTask:
    return PlannedTask(
        task="t",
        version="1",
        sample_set_id="set",
        sample_count=1,
        output_type=output_type,
        row_source="",
        row_source_revision="",
    )


def stream_of(samples: SampleMessages) -> NatsShardStream:
    """Sends nothing."""
    nowhere: Any = None
    rendered = RenderedSamples()
    return NatsShardStream(
        nowhere, samples, frozenset(), SystemClock(), DISPATCH_PROOF_KEY, rendered=rendered
    )


async def message_of(
    method: ScoringMethod, output_type: OutputType, prompt_form: PromptForm | None = None
) -> work_messages_pb2.WorkShard:
    order = RunOrder("toy", "openai/fake", prompt_form=prompt_form)
    run = Run(RunId("run-1"), order, "local", "remote", method, datetime(2026, 1, 1, tzinfo=UTC))
    task = task_of(output_type)
    wire = stream_of(Samples())
    [filled] = await wire.fill(run, [task], [Shard(0, 0, 0, range(1), 1, attempt=1)])
    return work_messages_pb2.WorkShard.FromString(filled.payloads[0])


@pytest.mark.parametrize(
    ("method", "form"),
    [
        (ScoringMethod.LOGLIKELIHOOD, run_pb2.PROMPT_FORM_COMPLETION),
        (ScoringMethod.GENERATE, run_pb2.PROMPT_FORM_UNSPECIFIED),
        (ScoringMethod.CONSTRAINED, run_pb2.PROMPT_FORM_UNSPECIFIED),
    ],
)
async def test_weighed_choices_continue_the_text_and_the_worker_decides_for_answers(
    method: ScoringMethod, form: "run_pb2.PromptForm.ValueType"
) -> None:
    message = await message_of(method, CHOICE)
    word = run_pb2.ScoringMethod.Name(message.scoring_method)
    assert word == f"SCORING_METHOD_{method.name}"
    assert message.prompt_form == form
    assert list(message.samples[0].choices) == [" yes"]
    ordered = await message_of(method, CHOICE, PromptForm.CHAT)
    assert ordered.prompt_form == run_pb2.PROMPT_FORM_CHAT


async def test_free_text_is_generated_whatever_scores_the_choices_of_the_run() -> None:
    message = await message_of(ScoringMethod.CONSTRAINED, TEXT)
    assert message.scoring_method == run_pb2.SCORING_METHOD_GENERATE
    assert message.prompt_form == run_pb2.PROMPT_FORM_UNSPECIFIED


ROW = sample_pb2.Sample(
    prompt=sample_pb2.Prompt(
        messages=[sample_pb2.ChatMessage(role="user", content="Yes?", fields_json='{"name":"ann"}')]
    ),
    params_json='{"temperature":0}',
    row_id="r0",
)


class Rows:
    async def read_samples(self, sample_set_id: str, positions: Sequence[int]) -> Sequence[sample_pb2.Sample]:  # noqa: ARG002  # the port's signature
        return [ROW for _ in positions]


async def test_rows_travel_with_what_they_say_themselves_and_leave_the_rest_to_the_engine() -> None:
    order = RunOrder(
        "",
        "openai/fake",
        dataset_id="ds_1",
        prompt_form=PromptForm.COMPLETION,
        params=GenerationParams(max_tokens=5),
    )
    run = Run(
        RunId("run-1"), order, "local", "remote", ScoringMethod.GENERATE, datetime(2026, 1, 1, tzinfo=UTC)
    )
    wire = stream_of(Rows())
    [filled] = await wire.fill(run, [task_of(TEXT)], [Shard(0, 0, 0, range(1), 1, attempt=1)])
    message = work_messages_pb2.WorkShard.FromString(filled.payloads[0])
    assert message.use_engine_defaults
    assert (message.params.max_tokens, message.params.HasField("temperature")) == (5, False)
    assert message.prompt_form == run_pb2.PROMPT_FORM_COMPLETION
    [sample] = message.samples
    assert sample.params_json == '{"temperature":0}'
    assert sample.prompt == ROW.prompt


async def test_samples_of_suites_are_asked_as_their_tasks_say() -> None:
    assert not (await message_of(ScoringMethod.GENERATE, TEXT)).use_engine_defaults
