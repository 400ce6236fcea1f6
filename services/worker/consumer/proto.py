"""Work messages parsed as shards, and parts of them as messages again."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from google.protobuf.message import DecodeError

from proctor.v1 import rollout_pb2, run_pb2, sample_pb2, work_messages_pb2
from proctor.values.generation import DEFAULT_MAX_TOKENS
from proctor.values.rollout import RolloutSpec
from proctor.values.run import RunId
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.scoring import ScoringMethod
from proctor.wire.enums import member_of
from proctor.wire.values import CODE_CHECK, PARAMS, PROMPT, ROLLOUT_SPEC
from services.worker.engines.engine import Sampling
from services.worker.engines.row_params import apply_row_params, read_row_params
from services.worker.execution.run_states import NEVER
from services.worker.execution.shard import DispatchProof, Shard, ShardSample


def shard_from_proto(work: work_messages_pb2.WorkShard, sent_at: datetime, *, completes_text: bool) -> Shard:
    """`completes_text` decides where the order leaves the prompt form open."""
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
        deadline=sent_at + work.time_left.ToTimedelta() if work.HasField("time_left") else NEVER,
        base_url=work.base_url,
        dispatch_proof=DispatchProof(work.dispatch_proof.dispatched, work.dispatch_proof.hmac),
        keeps_reasoning=work.keeps_reasoning,
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
            shared[own] = (apply_row_params(params, sampling, work.rollout), params.refusal)
        sampling_of_sample, refusal = shared[own]
        choices, content = sample.choices, sample.rollout_spec
        rollout_spec, problem = _rollout_spec(content) if content else (None, "")
        samples.append(
            ShardSample(
                sample.sample,
                _prompt(sample.prompt, is_chat=is_chat),
                tuple(choices) if choices else (),
                sampling_of_sample,
                refusal or problem,
                CODE_CHECK.from_proto(sample.code_check) if sample.HasField("code_check") else None,
                rollout_spec,
                sample.choice_ending,
            )
        )
    return tuple(samples)


def _rollout_spec(content: bytes) -> tuple[RolloutSpec | None, str]:
    """The spec of the rollout, and why there is none: a suite may hold anything in its place."""
    try:
        return ROLLOUT_SPEC.from_proto(rollout_pb2.RolloutSpec.FromString(content)), ""
    except (DecodeError, ValueError):
        return None, "The row holds no rollout that this worker can read. Order it by proctor rollouts run."


def only_samples(
    work: work_messages_pb2.WorkShard, samples: Collection[int], left: timedelta, *, failed_deliveries: int
) -> bytes:
    """The message with these samples only, and what is `left` of its time."""
    wanted = frozenset(samples)
    part = work_messages_pb2.WorkShard()
    part.CopyFrom(work)
    del part.samples[:]
    part.samples.extend(sample for sample in work.samples if sample.sample in wanted)
    part.failed_deliveries = failed_deliveries
    if work.HasField("time_left"):
        # Time left and not a deadline: the new message counts from its own time of sending.
        part.time_left.FromTimedelta(max(left, timedelta(0)))
    return part.SerializeToString()


def _method(work: work_messages_pb2.WorkShard) -> ScoringMethod:
    """The ordered method is for choices: where there are none, a text is generated."""
    has_choices = bool(work.samples) and bool(work.samples[0].choices)
    ordered = member_of(ScoringMethod, work.scoring_method) or ScoringMethod.LOGLIKELIHOOD
    return ordered if has_choices else ScoringMethod.GENERATE


def _is_chat(work: work_messages_pb2.WorkShard, method: ScoringMethod, *, completes_text: bool) -> bool:
    if work.prompt_form == run_pb2.PROMPT_FORM_UNSPECIFIED:
        return method is not ScoringMethod.LOGLIKELIHOOD and not completes_text
    return work.prompt_form == run_pb2.PROMPT_FORM_CHAT


def _prompt(message: sample_pb2.Prompt, *, is_chat: bool) -> Prompt:
    if not message.messages:
        # A text, as most prompts are: read here, since the codec's value would be taken apart again.
        return Prompt(None, (ChatMessage("user", message.text),)) if is_chat else PROMPT.from_proto(message)
    return Prompt(messages=PROMPT.from_proto(message).messages)


def _sampling(work: work_messages_pb2.WorkShard) -> Sampling:
    return _sampling_of(
        work.params.SerializeToString(deterministic=True),
        tuple(work.stop),
        work.rollout,
        truncate_left=work.truncation == run_pb2.TRUNCATION_LEFT,
        is_streamed=work.stream_answers,
        is_row=work.use_engine_defaults,
    )


# The shards of a run share one, and what engines make of it: it depends on nothing else of them.
@lru_cache(maxsize=128)
def _sampling_of(
    params_content: bytes,
    stop: tuple[str, ...],
    rollout: int,
    *,
    truncate_left: bool,
    is_streamed: bool,
    is_row: bool,
) -> Sampling:
    params = PARAMS.from_proto(run_pb2.GenerationParams.FromString(params_content))
    # Suites have the defaults of lm-evaluation-harness, rows of a data set those of the engine.
    max_tokens, temperature = (None, None) if is_row else (DEFAULT_MAX_TOKENS, 0.0)
    return Sampling(
        max_tokens=max_tokens if params.max_tokens is None else params.max_tokens,
        temperature=temperature if params.temperature is None else params.temperature,
        top_p=params.top_p,
        top_k=params.top_k,
        # With one seed all rollouts of a sample would be the same answer.
        seed=None if params.seed is None else params.seed + rollout,
        stop=stop,
        repetition_penalty=params.repetition_penalty,
        context_tokens=params.context_tokens,
        truncate_left=truncate_left,
        is_streamed=is_streamed,
        extra=_whole_numbers(params.provider_params),
        is_row=is_row,
    )


def _whole_numbers(values: Mapping[str, object]) -> dict[str, object]:
    """A Struct holds only doubles; a provider may require integers."""
    return {name: _whole(value) for name, value in values.items()}


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return _whole_numbers(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
