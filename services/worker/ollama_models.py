"""Reads what Ollama tells of its models: size, quantisation, context, memory, and whether they are loaded."""

from __future__ import annotations

from services.worker import engine
from services.worker.json_answers import Json, count_of, object_of, objects_of, text_of
from services.worker.memory_need import AttentionShape

CAPABILITIES = engine.EngineCapabilities(
    loglikelihood=False, chat=True, completion=True, constrained=True, seed=True, logprobs=False
)
# What Ollama makes room for where nobody says otherwise: the context, and bytes of a key or value.
_USUAL_CONTEXT = 4096
_CACHE_VALUE_BYTES = 2


def is_generative(shown: Json) -> bool:
    """A server that is too old to tell is believed to."""
    capabilities = shown.get("capabilities")
    return not isinstance(capabilities, list) or "completion" in capabilities


def read_loaded(running: Json) -> dict[str, int]:
    """Loaded models and the bytes that each of them holds now, context included."""
    models = objects_of(running.get("models"))
    return {text_of(each.get("model")): count_of(each.get("size")) for each in models}


def read_model(tag: Json, shown: Json, loaded: dict[str, int]) -> engine.ModelInfo:
    """Without its provider; `shown` is empty where the model could not be shown."""
    name, size = text_of(tag.get("model")), count_of(tag.get("size"))
    facts = _facts(shown)
    return engine.ModelInfo(
        name,
        CAPABILITIES,
        context_length=facts.get("context_length") or None,
        size_bytes=size or None,
        memory_bytes=loaded.get(name) or _memory_need(size, facts),
        quantization=text_of(object_of(tag.get("details")).get("quantization_level")),
        is_loaded=name in loaded,
    )


def _memory_need(size: int, facts: dict[str, int]) -> int | None:
    """Weights and the cache of the usual context; None where the model does not tell its shape."""
    heads = facts.get("attention.head_count", 0)
    head_dim = facts.get("attention.key_length") or (
        facts.get("embedding_length", 0) // heads if heads else 0
    )
    layers, kv_heads = facts.get("block_count", 0), facts.get("attention.head_count_kv", 0)
    if not (size and layers and kv_heads and head_dim):
        return None
    context = min(facts.get("context_length") or _USUAL_CONTEXT, _USUAL_CONTEXT)
    return size + AttentionShape(layers, kv_heads, head_dim).cache_bytes(context, _CACHE_VALUE_BYTES)


def _facts(shown: Json) -> dict[str, int]:
    """Counts of the model itself, whose names begin with its architecture's."""
    told = object_of(shown.get("model_info"))
    prefix = f"{text_of(told.get('general.architecture'))}."
    counted = ((name.removeprefix(prefix), count_of(told[name])) for name in told if name.startswith(prefix))
    return {name: count for name, count in counted if count}
