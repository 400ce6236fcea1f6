"""Token counts as each provider reports them: one that is counted anew is read here only."""

from proctor.values.plain import Json
from proctor.values.usage import TokenUsage
from services.worker.engines.parsed_json import object_of, tokens_of


def openai_usage(document: Json) -> TokenUsage:
    """Most servers count reasoning as completion tokens; xAI counts it separately, as its total shows.

    SGLang and Perplexity name it beside the others, not in their details.
    """
    usage = object_of(document.get("usage"))
    prompt, completion = tokens_of(usage.get("prompt_tokens")), tokens_of(usage.get("completion_tokens"))
    cached = tokens_of(object_of(usage.get("prompt_tokens_details")).get("cached_tokens"))
    details = object_of(usage.get("completion_tokens_details"))
    reasoning = tokens_of(details.get("reasoning_tokens")) or tokens_of(usage.get("reasoning_tokens"))
    if reasoning and tokens_of(usage.get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    return TokenUsage(prompt, completion, cached, reasoning)


def anthropic_usage(document: Json) -> TokenUsage:
    """Tokens read from and written to the cache are counted separately from other input."""
    usage = object_of(document.get("usage"))
    cached = tokens_of(usage.get("cache_read_input_tokens"))
    written = tokens_of(usage.get("cache_creation_input_tokens"))
    return TokenUsage(
        prompt_tokens=tokens_of(usage.get("input_tokens")) + cached + written,
        completion_tokens=tokens_of(usage.get("output_tokens")),
        cached_tokens=cached,
        reasoning_tokens=tokens_of(object_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def gemini_usage(document: Json) -> TokenUsage:
    """Reasoning is counted separately from the candidates, but generated and paid like them."""
    usage = object_of(document.get("usageMetadata"))
    thoughts = tokens_of(usage.get("thoughtsTokenCount"))
    return TokenUsage(
        prompt_tokens=tokens_of(usage.get("promptTokenCount")),
        completion_tokens=tokens_of(usage.get("candidatesTokenCount")) + thoughts,
        cached_tokens=tokens_of(usage.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
    )


def ollama_usage(document: Json) -> TokenUsage:
    """Ollama counts reasoning as completion tokens and reports neither reasoning nor cached tokens."""
    return TokenUsage(
        prompt_tokens=tokens_of(document.get("prompt_eval_count")),
        completion_tokens=tokens_of(document.get("eval_count")),
    )
