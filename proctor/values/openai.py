"""An answer in the form of the OpenAI protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.values.plain import Json
from proctor.values.usage import TokenUsage

# Bounds of the lifetime of a file that has one (`expires_after`).
MIN_EXPIRY_SECONDS, MAX_EXPIRY_SECONDS = 3600, 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class CompletionHead:
    """The fields of a completion before its choices. `created` is in seconds since 1970."""

    completion_id: str
    created: int
    model: str
    is_chat: bool = True


@dataclass(frozen=True, slots=True)
class InputDetails:
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class OutputDetails:
    reasoning_tokens: int


@dataclass(frozen=True, slots=True)
class SummedUsage:
    """The usage of a batch, or of an answer of the Responses API: not by the names of a completion."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int

    @classmethod
    def of(cls, usage: TokenUsage) -> "SummedUsage":
        return cls(
            usage.prompt_tokens,
            InputDetails(usage.cached_tokens),
            usage.completion_tokens,
            OutputDetails(usage.reasoning_tokens),
            usage.total_tokens,
        )


def request_id(run_id: str, sample: int) -> str:
    """The id of a sample's request: half of the run's id, and the number of the sample."""
    return f"{run_id.replace('-', '')[:20]}{sample:012x}"


def completion(head: CompletionHead, choices: Sequence[Json], usage: TokenUsage) -> Json:
    """A chat completion, or a text completion where the prompt was a text to continue."""
    return {
        "id": f"{'chatcmpl' if head.is_chat else 'cmpl'}-{head.completion_id}",
        "object": "chat.completion" if head.is_chat else "text_completion",
        "created": head.created,
        "model": head.model,
        "choices": list(choices),
        "usage": usage_body(usage),
    }


def choice(
    text: str,
    finish_reason: str | None,
    *,
    is_chat: bool = True,
    index: int = 0,
    logprobs: Mapping[str, object] | None = None,
    reasoning: str = "",
) -> Json:
    """Of the names that servers have for reasoning, the one that most of them know."""
    content: Json = {"message": message(text)} if is_chat else {"text": text}
    if reasoning:
        content.get("message", content)["reasoning_content"] = reasoning
    return {"index": index, **content, "logprobs": logprobs, "finish_reason": finish_reason or None}


def message(text: object) -> Json:
    return {"role": "assistant", "content": text, "refusal": None}


def usage_body(usage: TokenUsage) -> Json:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
