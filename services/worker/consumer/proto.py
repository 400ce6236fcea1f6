"""Work messages as the worker's own words, and pieces of them as messages again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from google.protobuf import json_format

from proctor.v1 import run_pb2, sample_pb2, work_messages_pb2
from services.worker.engines.engine import ChatMessage, Prompt, Sampling
from services.worker.engines.row_params import lay_over, read_row_params
from services.worker.execution.shard import Method, RunId, Shard, ShardSample

# What lm-evaluation-harness generates where nobody says how much.
DEFAULT_MAX_TOKENS = 256

_NEVER = datetime.max.replace(tzinfo=UTC)


def shard_from_proto(work: work_messages_pb2.WorkShard, *, completes_text: bool) -> Shard:
    """`completes_text` decides where the order leaves the form of a generation prompt open."""
    method = _method(work)
    is_chat = _is_chat(work, method, completes_text=completes_text)
    sampling = _sampling(work)
    return Shard(
        run_id=RunId(work.run_id),
        number=work.shard,
        attempt=work.attempt,
        epoch=work.epoch,
        model=work.model,
        task=work.task,
        rollout=work.rollout,
        samples=_samples(work, sampling, is_chat=is_chat),
        method=method,
        sampling=sampling,
        truncate_left=work.truncation == run_pb2.TRUNCATION_LEFT,
        deadline=work.deadline.ToDatetime(UTC) if work.HasField("deadline") else _NEVER,
        base_url=work.base_url,
    )


def _samples(
    work: work_messages_pb2.WorkShard, sampling: Sampling, *, is_chat: bool
) -> tuple[ShardSample, ...]:
    """Samples with the same parameters of their own share one sampling."""
    shared: dict[str, tuple[Sampling | None, str]] = {"": (None, "")}
    samples = []
    for sample in work.samples:
        own = sample.params_json
        if own not in shared:
            params = read_row_params(own)
            shared[own] = (lay_over(params, sampling, work.rollout), params.refusal)
        prompt = _prompt(sample.prompt, is_chat=is_chat)
        samples.append(ShardSample(sample.sample, prompt, tuple(sample.choices), *shared[own]))
    return tuple(samples)


def only_samples(work: work_messages_pb2.WorkShard, samples: Collection[int]) -> bytes:
    """The same message with these samples only."""
    wanted = frozenset(samples)
    piece = work_messages_pb2.WorkShard()
    piece.CopyFrom(work)
    del piece.samples[:]
    piece.samples.extend(sample for sample in work.samples if sample.sample in wanted)
    return piece.SerializeToString()


def _method(work: work_messages_pb2.WorkShard) -> Method:
    has_choices = bool(work.samples) and bool(work.samples[0].choices)
    if not has_choices or work.scoring_method == run_pb2.SCORING_METHOD_GENERATE:
        return Method.GENERATE
    is_constrained = work.scoring_method == run_pb2.SCORING_METHOD_CONSTRAINED
    return Method.CONSTRAINED if is_constrained else Method.SCORE_CHOICES


def _is_chat(work: work_messages_pb2.WorkShard, method: Method, *, completes_text: bool) -> bool:
    if work.prompt_form == run_pb2.PROMPT_FORM_UNSPECIFIED:
        return method is not Method.SCORE_CHOICES and not completes_text
    return work.prompt_form == run_pb2.PROMPT_FORM_CHAT


def _prompt(prompt: sample_pb2.Prompt, *, is_chat: bool) -> Prompt:
    if prompt.messages:
        return Prompt(
            messages=tuple(ChatMessage(turn.role, turn.content, turn.fields_json) for turn in prompt.messages)
        )
    if is_chat:
        return Prompt(messages=(ChatMessage("user", prompt.text),))
    return Prompt(text=prompt.text)


def _sampling(work: work_messages_pb2.WorkShard) -> Sampling:
    params, is_row = work.params, work.use_engine_defaults
    max_tokens, temperature = (None, None) if is_row else (DEFAULT_MAX_TOKENS, 0.0)
    return Sampling(
        max_tokens=params.max_tokens if params.HasField("max_tokens") else max_tokens,
        temperature=params.temperature if params.HasField("temperature") else temperature,
        top_p=params.top_p if params.HasField("top_p") else None,
        top_k=params.top_k if params.HasField("top_k") else None,
        seed=params.seed + work.rollout if params.HasField("seed") else None,
        stop=tuple(work.stop),
        repetition_penalty=params.repetition_penalty if params.HasField("repetition_penalty") else None,
        context_tokens=params.context_tokens if params.HasField("context_tokens") else None,
        truncate_left=work.truncation == run_pb2.TRUNCATION_LEFT,
        is_streamed=work.stream_answers,
        extra=_whole_numbers(json_format.MessageToDict(params.provider_params)),
        is_row=is_row,
    )


def _whole_numbers(values: dict[str, object]) -> dict[str, object]:
    """A Struct knows only doubles; a provider may insist on integers."""
    return {name: _whole(value) for name, value in values.items()}


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return _whole_numbers(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
