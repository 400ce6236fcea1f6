"""Scoring requests to vLLM, and its outputs read as scores, answers and OpenAI completions."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson
from vllm import SamplingParams
from vllm.logprobs import Logprob
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.sampling_params import RequestOutputKind

from proctor.values import openai
from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.plain import Json
from proctor.values.usage import Timing, TokenUsage
from services.worker.engines.engine import EngineResponse
from services.worker.engines.errors import EngineBrokeOff
from services.worker.engines.vllm.token_split import TokenSplit

# JSON has no infinity; the protocol uses this for an impossible token.
_MIN_LOGPROB = -9999.0
# The engine failed on the request, or was paused or stopped in the middle of it.
_BROKEN = frozenset({"error", "abort"})


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What a model wrote, its reasoning apart. `reasoning_tokens`: 0 where vLLM does not count them."""

    text: str
    reasoning: str = ""
    reasoning_tokens: int = 0


def refuse_broken(output: RequestOutput) -> None:
    """Raises EngineBrokeOff: an answer that the engine aborted may be empty or half, and has no scores."""
    for completion in output.outputs:
        if completion.finish_reason in _BROKEN:
            failure = EngineBrokeOff(f"vLLM broke off its answer ({completion.finish_reason}).")
            failure.usage = _usage(output)
            raise failure


def single_token_params(splits: Sequence[TokenSplit]) -> SamplingParams:
    """Requests the log-probability of each choice's single token, and of the likeliest token."""
    tokens = [split.continuation[0] for split in splits]
    # Choices may share a token; vLLM takes each once.
    return _scoring_params(logprob_token_ids=list(dict.fromkeys(tokens)))


def continuation_params() -> SamplingParams:
    """Requests the log-probability and the rank of each prompt token."""
    return _scoring_params(prompt_logprobs=0)


def _scoring_params(**wanted: object) -> SamplingParams:
    return SamplingParams(
        max_tokens=1, temperature=0.0, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY, **wanted
    )


def read_single_token_scores(output: RequestOutput, splits: Sequence[TokenSplit]) -> tuple[ChoiceScore, ...]:
    completion = output.outputs[0]
    assert completion.logprobs is not None
    logprobs = completion.logprobs[0]
    likeliest = logprobs[completion.token_ids[0]].logprob
    values = [logprobs[split.continuation[0]].logprob for split in splits]
    return tuple(ChoiceScore(value, is_greedy=value >= likeliest, token_count=1) for value in values)


def read_continuation_score(output: RequestOutput, split: TokenSplit) -> ChoiceScore:
    assert output.prompt_logprobs is not None
    positions = output.prompt_logprobs[len(split.context) :]
    scored = [at[token] for at, token in zip(positions, split.continuation, strict=True) if at is not None]
    return ChoiceScore(
        logprob=math.fsum(each.logprob for each in scored),
        is_greedy=all(each.rank == 1 for each in scored),
        token_count=len(scored),
    )


def read_response(
    output: RequestOutput, written: Sequence[WrittenText], total_seconds: float
) -> EngineResponse:
    """`written`: the texts of the output, in its order."""
    answer = Answer(written[0].text, output.outputs[0].finish_reason or "", reasoning=written[0].reasoning)
    usage = replace(_usage(output), reasoning_tokens=sum(each.reasoning_tokens for each in written))
    return EngineResponse(answer, usage, _answer_timing(output, total_seconds))


def _usage(output: RequestOutput) -> TokenUsage:
    return TokenUsage(
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=sum(len(each.token_ids) for each in output.outputs),
        cached_tokens=output.num_cached_tokens or 0,
    )


def read_scored_choices(
    scores: tuple[ChoiceScore, ...], outputs: Sequence[RequestOutput], total_seconds: float
) -> EngineResponse:
    """The one token that each scoring request must generate is not counted as completion."""
    usage = TokenUsage(
        prompt_tokens=sum(len(output.prompt_token_ids or ()) for output in outputs),
        cached_tokens=sum(output.num_cached_tokens or 0 for output in outputs),
    )
    return EngineResponse(Answer(choices=scores), usage, _scoring_timing(outputs, total_seconds))


def _answer_timing(output: RequestOutput, total_seconds: float) -> Timing:
    """The engine's own measurement, where vLLM's statistics are on."""
    stats = output.metrics
    if stats is None:
        return Timing(total_seconds=total_seconds)
    later_tokens = stats.num_generation_tokens - 1
    decoding_seconds = stats.last_token_ts - stats.first_token_ts
    return Timing(
        queue_seconds=stats.scheduled_ts - stats.queued_ts,
        first_token_seconds=stats.first_token_latency,
        between_tokens_seconds=decoding_seconds / later_tokens if later_tokens > 0 else None,
        total_seconds=total_seconds,
    )


def _scoring_timing(outputs: Iterable[RequestOutput], total_seconds: float) -> Timing:
    """The longest queue time of the requests; scoring has no first token."""
    waits = [each.metrics.scheduled_ts - each.metrics.queued_ts for each in outputs if each.metrics]
    return Timing(queue_seconds=max(waits, default=None), total_seconds=total_seconds)


def body_json(
    output: RequestOutput, written: Sequence[WrittenText], model: str, usage: TokenUsage, *, is_chat: bool
) -> str:
    """The whole answer; empty where it is only one text with a finish reason."""
    if len(output.outputs) == 1 and output.outputs[0].logprobs is None:
        return ""
    texts = sorted(zip(output.outputs, written, strict=True), key=lambda each: each[0].index)
    choices = [_choice(each, text, is_chat=is_chat) for each, text in texts]
    head = openai.CompletionHead(output.request_id, int(time.time()), model, is_chat=is_chat)
    return orjson.dumps(openai.completion(head, choices, usage)).decode()


def _choice(completion: CompletionOutput, written: WrittenText, *, is_chat: bool) -> Json:
    logprobs: Json | None = None
    if completion.logprobs is not None:
        logprobs = {"content": _chat_logprobs(completion)} if is_chat else _text_logprobs(completion)
    return openai.choice(
        written.text,
        completion.finish_reason,
        is_chat=is_chat,
        index=completion.index,
        logprobs=logprobs,
        reasoning=written.reasoning,
    )


def _chat_logprobs(completion: CompletionOutput) -> list[Json]:
    return [
        {**_token(at[token]), "top_logprobs": [_token(each) for each in _likeliest(at)]}
        for token, at in zip(completion.token_ids, _positions(completion), strict=True)
    ]


def _text_logprobs(completion: CompletionOutput) -> Json:
    taken = [at[token] for token, at in zip(completion.token_ids, _positions(completion), strict=True)]
    texts = [each.decoded_token or "" for each in taken]
    return {
        "tokens": texts,
        "token_logprobs": [_value(each) for each in taken],
        "top_logprobs": [
            {each.decoded_token or "": _value(each) for each in _likeliest(at)}
            for at in _positions(completion)
        ],
        "text_offset": [sum(map(len, texts[:number])) for number in range(len(texts))],
    }


def _positions(completion: CompletionOutput) -> Sequence[Mapping[int, Logprob]]:
    assert completion.logprobs is not None
    return completion.logprobs  # type: ignore[no-any-return]  # vLLM's types are not there to be checked


def _likeliest(at: Mapping[int, Logprob]) -> list[Logprob]:
    return sorted(at.values(), key=lambda each: -each.logprob)


def _token(logprob: Logprob) -> Json:
    text = logprob.decoded_token or ""
    return {"token": text, "logprob": _value(logprob), "bytes": list(text.encode(errors="replace"))}


def _value(logprob: Logprob) -> float:
    return max(float(logprob.logprob), _MIN_LOGPROB)
