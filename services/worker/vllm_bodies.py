"""An answer of vLLM's that is more than a text, in the form of the OpenAI protocol."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from vllm.logprobs import Logprob
from vllm.outputs import CompletionOutput, RequestOutput

from services.worker.engine import Usage

Json = dict[str, Any]

# JSON knows no infinity; the protocol takes this for what can hardly be.
_LEAST_LOGPROB = -9999.0


def body_json(output: RequestOutput, model: str, usage: Usage, *, is_chat: bool) -> str:
    """Empty where the answer is one text and why it ended."""
    if len(output.outputs) == 1 and output.outputs[0].logprobs is None:
        return ""
    choice = _chat_choice if is_chat else _text_choice
    body = {
        "id": f"{'chatcmpl' if is_chat else 'cmpl'}-{output.request_id}",
        "object": "chat.completion" if is_chat else "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice(each) for each in sorted(output.outputs, key=lambda each: each.index)],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }
    return orjson.dumps(body).decode()


def _chat_choice(completion: CompletionOutput) -> Json:
    return {
        "index": completion.index,
        "message": {"role": "assistant", "content": completion.text},
        "logprobs": None if completion.logprobs is None else {"content": _told_tokens(completion)},
        "finish_reason": completion.finish_reason,
    }


def _text_choice(completion: CompletionOutput) -> Json:
    return {
        "index": completion.index,
        "text": completion.text,
        "logprobs": None if completion.logprobs is None else _told_columns(completion),
        "finish_reason": completion.finish_reason,
    }


def _told_tokens(completion: CompletionOutput) -> list[Json]:
    return [
        {**_told(at[token]), "top_logprobs": [_told(each) for each in _likeliest(at)]}
        for token, at in zip(completion.token_ids, _positions(completion), strict=True)
    ]


def _told_columns(completion: CompletionOutput) -> Json:
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


def _told(logprob: Logprob) -> Json:
    text = logprob.decoded_token or ""
    return {"token": text, "logprob": _value(logprob), "bytes": list(text.encode(errors="replace"))}


def _value(logprob: Logprob) -> float:
    return max(float(logprob.logprob), _LEAST_LOGPROB)
