"""Part of `vllm_program.py`: reads reasoning by vLLM's parsers, without an engine."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer
from vllm.outputs import CompletionOutput

from proctor.values.providers.pool import PoolModel
from services.worker.engines.errors import EngineFailure, ModelCannotLoad
from services.worker.engines.vllm.written_reasoning import written_reasoning
from tests.integration.worker.engines.vllm.vllm_models import Seen, add_tokens, copy_starter_model

# The parser in the pools file, the one that vLLM knows, the text, and the row's fields for the template.
TEXTS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "apart": ("deepseek_r1", "", "<think>Is it London?</think>Paris", {}),
    "unended": ("deepseek_r1", "", "<think>Is it London?", {}),
    "thinking": ("qwen3", "", "Is it London?</think>Paris", {}),
    "not thinking": ("qwen3", "", "Paris", {"enable_thinking": False}),
    "by its tokens": ("", "", "[THINK]Is it London?[/THINK]Paris", {}),
    "turned off": ("none", "openai_gptoss", "[THINK]Is it London?[/THINK]Paris", {}),
    "channels": ("", "openai_gptoss", "<|channel|>final<|message|>Paris", {}),
    "no template": ("hf", "", "Paris", {}),
}


def see_reasoning(folder: Path) -> Seen:
    """What is read of each text, and whether the texts must have special tokens."""
    copy_starter_model(folder / "thinking")
    add_tokens(folder / "thinking", ("<think>", "</think>"), is_special=False)
    add_tokens(folder / "thinking", ("[THINK]", "[/THINK]", "[TOOL_CALLS]"), is_special=True)
    tokenizer = AutoTokenizer.from_pretrained(folder / "thinking")
    seen: Seen = {name: _read(tokenizer, *case) for name, case in TEXTS.items()}
    return {**seen, "broken": _broken(tokenizer)}


def _broken(tokenizer: Any) -> str:
    """A parser that fails on an answer."""
    reasoning = written_reasoning(PoolModel("vllm/x", "/x", reasoning_parser="qwen3"), tokenizer, "")
    assert reasoning is not None

    def fail(**_: object) -> None:
        raise IndexError("no such token")

    try:
        replace(reasoning, parser=fail).read(CompletionOutput(0, "x", [], None, None), {})
    except EngineFailure as failed:
        return str(failed)
    return ""


def _read(tokenizer: Any, parser: str, known: str, text: str, template: dict[str, Any]) -> object:
    model = PoolModel("vllm/x", "/x", reasoning_parser=parser)
    try:
        reasoning = written_reasoning(model, tokenizer, known)
    except ModelCannotLoad as refused:
        return str(refused)
    if reasoning is None:
        return None
    output = CompletionOutput(0, text, tokenizer(text)["input_ids"], None, None)
    return {"special": reasoning.keeps_special_tokens, **asdict(reasoning.read(output, template))}
