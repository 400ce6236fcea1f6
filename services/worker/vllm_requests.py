"""How choices are scored by vLLM and how its outputs are read; `vllm_sampling` has what generates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from vllm import SamplingParams
from vllm.outputs import RequestOutput
from vllm.sampling_params import RequestOutputKind

from services.worker import engine
from services.worker.token_split import TokenSplit


def single_token_params(splits: Sequence[TokenSplit]) -> SamplingParams:
    """The log-probability of each choice's one token, and of the likeliest token, after the same context."""
    tokens = [split.continuation[0] for split in splits]
    return _scoring_params(logprob_token_ids=list(dict.fromkeys(tokens)))


def continuation_params() -> SamplingParams:
    """The log-probability and the rank of each token of the prompt itself."""
    return _scoring_params(prompt_logprobs=0)


def _scoring_params(**wanted: object) -> SamplingParams:
    return SamplingParams(
        max_tokens=1, temperature=0.0, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY, **wanted
    )


def read_single_token_scores(
    output: RequestOutput, splits: Sequence[TokenSplit]
) -> tuple[engine.ChoiceScore, ...]:
    completion = output.outputs[0]
    assert completion.logprobs is not None
    logprobs = completion.logprobs[0]
    likeliest = logprobs[completion.token_ids[0]].logprob
    values = [logprobs[split.continuation[0]].logprob for split in splits]
    return tuple(engine.ChoiceScore(value, is_greedy=value >= likeliest, token_count=1) for value in values)


def read_continuation_score(output: RequestOutput, split: TokenSplit) -> engine.ChoiceScore:
    assert output.prompt_logprobs is not None
    positions = output.prompt_logprobs[len(split.context) :]
    scored = [at[token] for at, token in zip(positions, split.continuation, strict=True) if at is not None]
    return engine.ChoiceScore(
        logprob=math.fsum(each.logprob for each in scored),
        is_greedy=all(each.rank == 1 for each in scored),
        token_count=len(scored),
    )


def read_generated(output: RequestOutput, total_seconds: float) -> engine.Generated:
    completion = output.outputs[0]
    usage = engine.Usage(
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=sum(len(each.token_ids) for each in output.outputs),
        cached_tokens=output.num_cached_tokens or 0,
    )
    return engine.Generated(
        completion.text, completion.finish_reason or "", usage, _answer_timing(output, total_seconds)
    )


def read_scored_choices(
    scores: tuple[engine.ChoiceScore, ...], outputs: Sequence[RequestOutput], total_seconds: float
) -> engine.ScoredChoices:
    """The one token that each scoring request must produce is no answer, so it is not counted as one."""
    usage = engine.Usage(
        prompt_tokens=sum(len(output.prompt_token_ids or ()) for output in outputs),
        cached_tokens=sum(output.num_cached_tokens or 0 for output in outputs),
    )
    return engine.ScoredChoices(scores, usage, _scoring_timing(outputs, total_seconds))


def _answer_timing(output: RequestOutput, total_seconds: float) -> engine.Timing:
    """As the engine measured it, token by token; vLLM tells it only where its statistics are on."""
    stats = output.metrics
    if stats is None:
        return engine.Timing(total_seconds=total_seconds)
    later_tokens = stats.num_generation_tokens - 1
    decoding_seconds = stats.last_token_ts - stats.first_token_ts
    return engine.Timing(
        queue_seconds=stats.scheduled_ts - stats.queued_ts,
        first_token_seconds=stats.first_token_latency,
        between_tokens_seconds=decoding_seconds / later_tokens if later_tokens > 0 else None,
        total_seconds=total_seconds,
    )


def _scoring_timing(outputs: Iterable[RequestOutput], total_seconds: float) -> engine.Timing:
    """The longest wait of the requests; what they generate is no answer, so its first token is none."""
    waits = [each.metrics.scheduled_ts - each.metrics.queued_ts for each in outputs if each.metrics]
    return engine.Timing(queue_seconds=max(waits, default=None), total_seconds=total_seconds)
