"""Models for the real engine, the questions asked of it, and how a program tells what it saw."""

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from proctor.stack.defaults import starter_model_dir
from proctor.values.providers.pool import PoolModel
from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.errors import EngineFailure
from services.worker.engines.vllm.engine import VllmEngine
from services.worker.engines.vllm.model_files import VllmSettings

FIRST, SECOND, BROKEN, MISSING = "vllm/first", "vllm/second", "vllm/broken", "vllm/missing"
# The first one, all of whose text is reasoning that never ends.
THINKING = "vllm/thinking"
# The engine of the second one and its adapters.
ADAPTED = "adapted"
GREEDY = engine.Sampling(max_tokens=8, extra={"ignore_eos": True})
ENDLESS = engine.Sampling(max_tokens=1500, extra={"ignore_eos": True})
QUESTION = Prompt("Review: The film was good.\nSentiment:")
CHAT = Prompt(messages=(ChatMessage("user", "What is 1 + 2?"),))
# What the first model's own generation_config says of who leaves it open.
OWN_LENGTH = 5
Seen = dict[str, object]


def copy_starter_model(to: Path) -> None:
    """What `make vllm` made."""
    shutil.copytree(starter_model_dir(os.environ), to)


def add_tokens(folder: Path, tokens: Sequence[str], *, is_special: bool) -> None:
    """Tokens behind the vocabulary of a model, which it never writes."""
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    first = 1 + max(
        *tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])
    )
    like = tokenizer["added_tokens"][0]
    tokenizer["added_tokens"] += [
        {**like, "id": number, "content": token, "special": is_special}
        for number, token in enumerate(tokens, start=first)
    ]
    file.write_text(json.dumps(tokenizer), encoding="utf-8")


def make_models(folder: Path) -> None:
    """Two that can be loaded, the second without a template, and one that cannot."""
    if folder.exists():
        return
    copy_starter_model(folder / "first")
    add_tokens(folder / "first", ("<think>", "</think>"), is_special=False)
    settings = {"max_new_tokens": OWN_LENGTH, "temperature": 0.5, "do_sample": True}
    (folder / "first" / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    copy_starter_model(folder / "second")
    (folder / "second" / "chat_template.jinja").unlink()
    broken = folder / "broken"
    broken.mkdir()
    (broken / "config.json").write_bytes((folder / "first" / "config.json").read_bytes())
    (broken / "model.safetensors").write_bytes(b"no weights")


def make_engine(folder: Path, *adapters: PoolModel) -> VllmEngine:
    names = (FIRST, SECOND, BROKEN, MISSING)
    models = [PoolModel(n, str(folder / n.split("/")[1]), tool_parser="hermes") for n in names]
    models[0] = replace(models[0], engine_key="shared")
    models[1] = replace(models[1], engine_key=ADAPTED)
    thinking = replace(models[0], name=THINKING, reasoning_parser="deepseek_r1")
    return VllmEngine(VllmSettings((*models, thinking, *adapters)))


def engine_processes() -> list[psutil.Process]:
    """Dead ones that were not waited for are not counted."""
    children = psutil.Process().children(recursive=True)
    return [
        each for each in children if "EngineCore" in each.name() and each.status() != psutil.STATUS_ZOMBIE
    ]


async def lasting_engines() -> list[psutil.Process]:
    """A process that ends may take a moment to free its memory."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, engine_processes(), timeout=10)
    return alive


async def failure_of(asking: Awaitable[object]) -> Seen:
    started = time.monotonic()
    try:
        await asking
    except EngineFailure as failure:
        seconds = time.monotonic() - started
        return {"type": type(failure).__name__, "says": str(failure), "seconds": seconds}
    return {"type": "none"}


def report(seen: Seen) -> None:
    sys.stdout.write(f"\n{json.dumps(seen)}\n")
    sys.stdout.flush()
