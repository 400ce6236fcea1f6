"""The engine `vllm`: AsyncLLM in the worker's process, one group of models at a time, switched in place."""

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.providers.models import ModelInfo
from proctor.values.providers.pool import PoolModel
from proctor.values.providers.worker import EngineLoad
from proctor.values.sample import Prompt
from proctor.values.usage import NO_TOKENS, Timing
from services.worker.engines import engine
from services.worker.engines.errors import PromptTooLong, RequestRefused
from services.worker.engines.row_params import template_fields
from services.worker.engines.tool_calls import shown_tools
from services.worker.engines.vllm.model_files import (
    VllmSettings,
    adapter_facts,
    read_adapter_rank,
    read_model_config,
)
from services.worker.engines.vllm.model_list import list_vllm_models
from services.worker.engines.vllm.token_split import (
    TokenSplit,
    cut_left,
    rolling_windows,
    split_tokens,
)

if TYPE_CHECKING:
    from services.worker.engines.vllm.runtime import VllmRuntime

# The least room for an answer without max_tokens where its prompt is cut; of a short context, half.
_ROOM_FOR_ANSWER = 256


class VllmEngine:
    def __init__(self, settings: VllmSettings) -> None:
        self._settings = settings
        self._runtime: VllmRuntime | None = None
        # The runtime for each model that is ready.
        self._views: dict[str, VllmRuntime] = {}
        self._switch = asyncio.Lock()
        self._requests_in_flight = 0
        self._no_request_in_flight = asyncio.Event()
        self._no_request_in_flight.set()
        # One thread starts and stops engines in order; the engine's process dies with the thread.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vllm-starter")

    @property
    def loaded_model(self) -> str | None:
        if self._runtime is None or self._runtime.is_dead:
            return None
        return next(iter(self._views), self._runtime.model.name)

    async def load(self, model: str) -> None:
        """Waits for requests in flight, then switches; an engine that died is restarted."""
        async with self._switch:
            if self._view_of(model):
                return
            wanted = self._settings.find_model(model)
            read_model_config(wanted)
            if wanted.lora:
                read_adapter_rank(wanted)
            if not self._shares_engine(wanted):
                # Answers under way are finished: stopping would fail them all.
                await self._no_request_in_flight.wait()
                await self._stop_runtime()
                await self._in_starter(lambda: self._start_runtime(wanted))
            await self._add_view(wanted)

    async def generate(self, model: str, prompt: Prompt, sampling: engine.Sampling) -> engine.EngineResponse:
        async with self._serving(model) as runtime:
            ids = await prompt_ids(runtime, prompt, sampling)
            return await runtime.generate(ids, sampling, is_chat=prompt.is_chat)

    async def score_choices(
        self, model: str, prompt: Prompt, choices: Sequence[str], *, ending: str = "", truncate_left: bool
    ) -> engine.EngineResponse:
        async with self._serving(model) as runtime:
            if is_whole_text(prompt, choices, ending):
                return await score_whole_text(runtime, choices[0])
            splits = await choice_splits(runtime, prompt, choices, ending)
            return await runtime.score(fit_context(runtime, splits, truncate_left=truncate_left))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return await asyncio.to_thread(list_vllm_models, self._settings, is_cpu=_is_built_for_cpu())

    @property
    def gpus(self) -> int:
        return self._runtime.gpus if self._runtime else 0

    def current_load(self) -> EngineLoad | None:
        if self.loaded_model is None:
            return None
        assert self._runtime is not None
        return self._runtime.current_load()

    async def describe(self) -> Mapping[str, str]:
        if self._runtime is None:
            return {"engine": "vllm", "engine_version": metadata.version("vllm")}
        facts = adapter_facts(self._runtime.facts(), [view.model for view in self._views.values()])
        parsers = sorted({view.reasoning_parser for view in self._views.values()} - {""})
        return {**facts, "reasoning_parser": ", ".join(parsers)} if parsers else facts

    async def close(self) -> None:
        await self._stop_runtime()
        self._starter.shutdown()

    @asynccontextmanager
    async def _serving(self, model: str) -> AsyncIterator["VllmRuntime"]:
        """The runtime of the model, which is not stopped meanwhile."""
        # A switch in progress goes first: a stream of requests would hold it up for ever.
        # No await after the check: the runtime cannot go before it is counted below.
        while self._switch.locked() or not (runtime := self._view_of(model)):
            await self.load(model)
        self._requests_in_flight += 1
        self._no_request_in_flight.clear()
        try:
            yield runtime
        finally:
            self._requests_in_flight -= 1
            if not self._requests_in_flight:
                self._no_request_in_flight.set()

    def _view_of(self, model: str) -> "VllmRuntime | None":
        return None if self.loaded_model is None else self._views.get(model)

    def _shares_engine(self, wanted: PoolModel) -> bool:
        if self._runtime is None or self._runtime.is_dead:
            return False
        return self._runtime.model in self._settings.group_of(wanted)

    async def _add_view(self, wanted: PoolModel) -> None:
        assert self._runtime is not None
        # Fixed by the pool's file: vLLM caches adapters by this number.
        number = 1 + self._settings.models.index(wanted)
        self._views[wanted.name] = (
            await self._runtime.with_adapter(wanted, number)
            if wanted.lora
            else self._runtime.with_model(wanted)
        )

    async def _in_starter(self, call: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._starter, call)

    def _start_runtime(self, model: PoolModel) -> None:
        """Runs in the starter's thread.

        It stores the engine itself, so that a cancelled load leaves no orphan.
        """
        is_cpu = _is_built_for_cpu()
        for name, value in self._settings.environment(is_cpu=is_cpu).items():
            # Variables of the user win.
            os.environ.setdefault(name, value)
        # Here and not above: vLLM reads its environment when it is imported.
        from services.worker.engines.vllm.start import start_runtime  # noqa: PLC0415  # after the variables that vLLM reads at import

        self._runtime = start_runtime(self._settings.group_of(model), self._settings)

    async def _stop_runtime(self) -> None:
        """Stops the engine, also one that a cancelled load left starting.

        The starter's thread finishes that first.
        """
        await self._in_starter(lambda: None)
        runtime, self._runtime = self._runtime, None
        self._views.clear()
        if runtime is not None:
            runtime.stop_listening()
            await self._in_starter(runtime.stop)


def _is_built_for_cpu() -> bool:
    return "cpu" in metadata.version("vllm")


async def prompt_ids(runtime: "VllmRuntime", prompt: Prompt, sampling: engine.Sampling) -> Sequence[int]:
    """A prompt cut from the left leaves room for the whole answer, as in lm-evaluation-harness."""
    if prompt.is_chat:
        text = await runtime.render(prompt.messages, _template_fields(sampling))
        ids = runtime.encode_templated([text])[0]
    else:
        ids = runtime.encode_all([prompt.as_text])[0]
    if sampling.truncate_left:
        return ids[-longest_cut_prompt(runtime.max_prompt_length, sampling.max_tokens, len(ids)) :]
    if len(ids) > runtime.max_prompt_length:
        raise too_long(len(ids), runtime)
    return ids


def _template_fields(sampling: engine.Sampling) -> Mapping[str, object]:
    """The row's own fields, and the tools that the model is shown."""
    asked = shown_tools(sampling)
    tools = {"tools": [tool.as_json() for tool in asked.tools]} if asked else {}
    return {**template_fields(sampling), **tools}


def longest_cut_prompt(room: int, max_tokens: int | None, length: int) -> int:
    """An answer without max_tokens gets the rest of the context; a prompt that leaves none is cut for it."""
    if max_tokens is None:
        return length if length <= room else room + 1 - min(_ROOM_FOR_ANSWER, (room + 1) // 2)
    return max(1, room + 1 - max_tokens)


def is_whole_text(prompt: Prompt, choices: Sequence[str], ending: str) -> bool:
    """A text by itself, such as a document of wikitext; a chat of nothing is no prompt either."""
    contents = "".join(turn.content for turn in prompt.messages) if prompt.is_chat else prompt.as_text
    return len(choices) == 1 and not contents and not ending


async def score_whole_text(runtime: "VllmRuntime", text: str) -> engine.EngineResponse:
    """The sum over its windows. A text without tokens is certain."""
    [split] = split_tokens(runtime.encode_all, "", [text], runtime.prefix_token)
    windows = rolling_windows(split, runtime.max_prompt_length)
    if not windows:
        certain = Answer(choices=(ChoiceScore(0.0, is_greedy=True),))
        return engine.EngineResponse(certain, NO_TOKENS, Timing(total_seconds=0.0))
    response = await runtime.score(windows)
    scores = response.answer.choices
    whole = ChoiceScore(
        math.fsum(each.logprob for each in scores),
        all(each.is_greedy for each in scores),
        sum(each.token_count for each in scores),
    )
    return replace(response, answer=Answer(choices=(whole,)))


async def choice_splits(
    runtime: "VllmRuntime", prompt: Prompt, choices: Sequence[str], ending: str
) -> tuple[TokenSplit, ...]:
    text, encode_all = prompt.as_text, runtime.encode_all
    if prompt.is_chat:
        text, encode_all = await runtime.render(prompt.messages), runtime.encode_templated
    if ending:
        contexts = [text + choice.removesuffix(ending) for choice in choices]
        splits = tuple(split_tokens(encode_all, each, [ending], runtime.prefix_token)[0] for each in contexts)
    else:
        splits = split_tokens(encode_all, text, choices, runtime.prefix_token)
    if not all(split.continuation for split in splits):
        raise RequestRefused("A choice adds no token to the prompt, so it cannot be scored.")
    return splits


def fit_context(
    runtime: "VllmRuntime", splits: tuple[TokenSplit, ...], *, truncate_left: bool
) -> tuple[TokenSplit, ...]:
    longest = max(len(split.ids) for split in splits)
    if longest <= runtime.max_prompt_length:
        return splits
    if truncate_left:
        return tuple(cut_left(split, runtime.max_prompt_length) for split in splits)
    raise too_long(longest, runtime)


def too_long(tokens: int, runtime: "VllmRuntime") -> PromptTooLong:
    return PromptTooLong(
        f"The prompt has {tokens} tokens and {runtime.model.name} takes {runtime.max_prompt_length}; "
        "order the run with truncate: left, or serve the model with a longer max_model_len."
    )
