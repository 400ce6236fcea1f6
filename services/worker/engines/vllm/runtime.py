"""One running vLLM engine: encodes prompts, sends requests, translates errors, reads its load.

vLLM reads its environment when it is imported, so this module is imported only after that is set.
"""

import asyncio
import hashlib
import itertools
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import vllm
from jinja2 import TemplateError
from prometheus_client import REGISTRY
from vllm import SamplingParams
from vllm.exceptions import VLLMClientError
from vllm.inputs.engine import tokens_input
from vllm.lora.request import LoRARequest
from vllm.outputs import RequestOutput
from vllm.platforms import current_platform
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from proctor.values.providers.pool import PoolModel
from proctor.values.providers.worker import EngineLoad
from proctor.values.sample import ChatMessage
from services.worker.engines import engine
from services.worker.engines.chat_messages import templated_objects
from services.worker.engines.errors import (
    EngineDied,
    EngineFailure,
    ModelCannotLoad,
    ModelRefused,
    RequestRefused,
)
from services.worker.engines.row_params import template_fields
from services.worker.engines.tool_calls import shown_tools
from services.worker.engines.vllm import outputs
from services.worker.engines.vllm.called_tools import CalledTools, called_tools_of
from services.worker.engines.vllm.error_text import reason_in_error
from services.worker.engines.vllm.model_files import is_folder, model_source, weights_revision
from services.worker.engines.vllm.sampling import generation_params
from services.worker.engines.vllm.template_threads import TemplateThreads
from services.worker.engines.vllm.token_split import TokenSplit, is_one_token_each
from services.worker.engines.vllm.written_reasoning import WrittenReasoning, written_reasoning

_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_CACHE_USE = "vllm:kv_cache_usage_perc"
_QUERIES = "vllm:prefix_cache_queries_total"
_HITS = "vllm:prefix_cache_hits_total"
_GENERATED = "vllm:generation_tokens_total"
_NAMES = (_RUNNING, _WAITING, _CACHE_USE, _QUERIES, _HITS, _GENERATED)


# An engine on a CPU is killed after this time: nothing of it is kept.
_CPU_STOP_SECONDS = 1.0
_RENDER_SECONDS = 10.0
# Some templates take the square of the number of messages; these are rendered in microseconds.
_MAX_SMALL_MESSAGES, _MAX_SMALL_CHARACTERS = 64, 64 * 1024
# Far beyond any context: tokenizing more only takes memory.
_MAX_RENDERED_CHARACTERS = 16_000_000
_DIGEST_CHARACTERS = 12
_NOTHING: Mapping[str, object] = {}


class VllmRuntime:
    """Starting and stopping block; all other methods belong to the event loop of the first request."""

    def __init__(self, model: PoolModel, async_llm: AsyncLLM) -> None:
        self.model = model
        self._async_llm = async_llm
        self._tokenizer = async_llm.get_tokenizer()
        self._numbers = itertools.count()
        self._threads = TemplateThreads(_RENDER_SECONDS)
        parallel = async_llm.vllm_config.parallel_config
        self.gpus: int = 0 if current_platform.is_cpu() else parallel.world_size_across_dp
        self.adapter: LoRARequest | None = None
        # One token is left for the one that every request must generate.
        self.max_prompt_length: int = async_llm.model_config.max_model_len - 1
        # From the model's generation_config.
        self._defaults: Mapping[str, object] = async_llm.model_config.get_diff_sampling_param()
        self._known_parser: str = async_llm.vllm_config.structured_outputs_config.reasoning_parser
        self.reasoning: WrittenReasoning | None = None

    def with_model(self, model: PoolModel) -> "VllmRuntime":
        """The same engine for another of the models that share it."""
        return self._copy_for(model, None)

    async def with_adapter(self, model: PoolModel, number: int) -> "VllmRuntime":
        """The same engine with a LoRA adapter; numbers of adapters begin at 1."""
        adapter = LoRARequest(model.name, number, str(Path(model.lora).expanduser()))
        try:
            await self._async_llm.add_lora(adapter)
        except Exception as error:  # an edge: an adapter is a foreign file too
            raise ModelCannotLoad(f"vLLM cannot load the adapter {model.name}: {_reason(error)}") from error
        return self._copy_for(model, adapter)

    def _copy_for(self, model: PoolModel, adapter: LoRARequest | None) -> "VllmRuntime":
        # Engine, tokenizer and request numbers stay shared.
        runtime = copy(self)
        runtime.model, runtime.adapter = model, adapter
        runtime.reasoning = written_reasoning(model, self._tokenizer, self._known_parser)
        return runtime

    @property
    def reasoning_parser(self) -> str:
        """vLLM's name of the parser that answers to chats are read by; "" for none."""
        return self.reasoning.name if self.reasoning else ""

    @property
    def is_dead(self) -> bool:
        return bool(self._async_llm.errored)

    @property
    def prefix_token(self) -> int | None:
        """The token in place of an empty context, as lm-evaluation-harness chooses it."""
        begin: int | None = self._tokenizer.bos_token_id
        end: int | None = self._tokenizer.eos_token_id
        return begin if begin is not None else end

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer(texts)["input_ids"]
        return ids

    def encode_templated(self, texts: list[str]) -> list[list[int]]:
        """The chat template has added the special tokens already."""
        ids: list[list[int]] = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        return ids

    async def render(self, messages: Sequence[ChatMessage], fields: Mapping[str, object] = _NOTHING) -> str:
        """Bounded in time where a row has many messages, or `fields` for the template to read."""
        if not fields and _is_small(messages):
            return self._apply_chat_template(messages)
        try:
            text = await self._threads.render(partial(self._apply_chat_template, messages, fields))
        except TimeoutError as error:
            raise RequestRefused(
                f"The chat template of {self.model.name} takes more than {_RENDER_SECONDS:g} s for the line."
            ) from error
        if len(text) > _MAX_RENDERED_CHARACTERS:
            raise RequestRefused(
                f"The chat template of {self.model.name} makes more than {_MAX_RENDERED_CHARACTERS:,} "
                "characters of the line."
            )
        return text

    def _apply_chat_template(
        self, messages: Sequence[ChatMessage], fields: Mapping[str, object] = _NOTHING
    ) -> str:
        if not self._tokenizer.chat_template:
            raise ModelRefused(
                f"The model {self.model.name} has no chat template: order prompt_form completion."
            )
        turns = templated_objects(messages, "the vLLM engine")
        settings = {"tokenize": False, "add_generation_prompt": True}
        try:
            text: str = self._tokenizer.apply_chat_template(turns, **{**fields, **settings})
        except TemplateError as error:
            raise RequestRefused(
                f"The chat template of {self.model.name} refuses the messages: {_reason(error)}"
            ) from error
        return text

    async def generate(
        self, token_ids: Sequence[int], sampling: engine.Sampling, *, is_chat: bool
    ) -> engine.EngineResponse:
        started = time.monotonic()
        tools = self._tools(sampling)
        reasoning = self.reasoning if is_chat else None
        params = generation_params(
            sampling,
            self._defaults,
            keeps_special_tokens=reasoning is not None and reasoning.keeps_special_tokens,
        )
        output = await self._request(token_ids, params)
        if reasoning is None or params.structured_outputs is not None:
            # A constraint holds from the first token: there is no reasoning before the answer.
            written = [outputs.WrittenText(each.text) for each in output.outputs]
        else:
            written = [reasoning.read(each, template_fields(sampling)) for each in output.outputs]
        response = outputs.read_response(output, written, time.monotonic() - started)
        answer, usage = response.answer, response.usage
        if tools is not None and (called := tools.read(answer, usage, self.model.name)).body_json:
            return replace(response, answer=called)
        if not sampling.is_row:
            return response
        body = outputs.body_json(output, written, self.model.name, usage, is_chat=is_chat)
        return replace(response, answer=replace(answer, body_json=body))

    def _tools(self, sampling: engine.Sampling) -> CalledTools | None:
        asked = shown_tools(sampling)
        return called_tools_of(self.model, self._tokenizer, asked) if asked else None

    async def score(self, splits: Sequence[TokenSplit]) -> engine.EngineResponse:
        """One request where every choice is one token, else one request for each choice, all at once."""
        started = time.monotonic()
        if is_one_token_each(splits):
            answers = [await self._request(splits[0].context, outputs.single_token_params(splits))]
            scores = outputs.read_single_token_scores(answers[0], splits)
        else:
            prompts = [split.ids for split in splits]
            answers = await self._request_all(prompts, outputs.continuation_params())
            scores = tuple(map(outputs.read_continuation_score, answers, splits))
        return outputs.read_scored_choices(scores, answers, time.monotonic() - started)

    async def _request_all(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams
    ) -> list[RequestOutput]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._request(prompt, params), name="prompt") for prompt in prompts
                ]
        except ExceptionGroup as failures:
            # All come from one engine, and mostly are one failure.
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _request(self, token_ids: Sequence[int], params: SamplingParams) -> RequestOutput:
        """The final output of one request; cancelling the awaiting task aborts it at the engine."""
        prompt = tokens_input(list(token_ids))
        request_id = f"{self.model.name}-{next(self._numbers)}"
        final: RequestOutput | None = None
        try:
            async for output in self._async_llm.generate(
                prompt, params, request_id=request_id, lora_request=self.adapter
            ):
                final = output
        except (EngineDeadError, EngineGenerateError, VLLMClientError, ValueError) as error:
            raise self._failure_from(error) from error
        assert final is not None
        outputs.refuse_broken(final)
        return final

    def _failure_from(self, error: Exception) -> EngineFailure:
        if isinstance(error, EngineDeadError) or self.is_dead:
            return EngineDied(f"The engine of the model {self.model.name} died.")
        if isinstance(error, EngineGenerateError):
            return EngineFailure(f"vLLM failed on a request: {_reason(error.__cause__ or error)}")
        return RequestRefused(f"vLLM refused the request: {_reason(error)}")

    def current_load(self) -> EngineLoad:
        """Summed over the engine's replicas; of the cache usage the highest counts.

        vLLM keeps these metrics in this process, and resets them with every engine that it starts.
        """
        sums: Counter[str] = Counter()
        cache_use = 0.0
        for metric in REGISTRY.restricted_registry(_NAMES).collect():
            for sample in metric.samples:
                sums[sample.name] += int(sample.value)
                if sample.name == _CACHE_USE:
                    cache_use = max(cache_use, sample.value)
        return EngineLoad(
            running_requests=sums[_RUNNING],
            waiting_requests=sums[_WAITING],
            kv_cache_usage=cache_use,
            prefix_cache_queries=sums[_QUERIES],
            prefix_cache_hits=sums[_HITS],
            generated_tokens=sums[_GENERATED],
        )

    def stop_listening(self) -> None:
        """Call it on the event loop before `stop`; otherwise the engine's end is logged as its death."""
        if self._async_llm.output_handler is not None:
            self._async_llm.output_handler.cancel()

    def stop(self) -> None:
        """An engine on a CPU stops slowly, and the kernel frees everything that it holds."""
        self._async_llm.shutdown(timeout=_CPU_STOP_SECONDS if current_platform.is_cpu() else None)

    def facts(self) -> Mapping[str, str]:
        """Facts that a run stores so that its figures can be repeated."""
        config = self._async_llm.model_config
        template = self._tokenizer.chat_template
        digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
        more = {
            "quantization": str(config.quantization or ""),
            "chat_template": digest[:_DIGEST_CHARACTERS] if template else "",
        }
        return {
            "engine": "vllm",
            "engine_version": vllm.__version__,
            "torch_version": torch.__version__,
            "model_source": model_source(self.model),
            "model_revision": self._revision(),
            "dtype": str(config.dtype).removeprefix("torch."),
            "max_model_len": str(config.max_model_len),
            "hardware": _hardware(),
            **{name: fact for name, fact in more.items() if fact},
        }

    def _revision(self) -> str:
        """The commit of a model from a hub, or a digest of the folder."""
        if is_folder(self.model.path):
            return weights_revision(Path(model_source(self.model)))
        return str(getattr(self._async_llm.model_config.hf_config, "_commit_hash", None) or "unknown")


def _hardware() -> str:
    if current_platform.is_cpu():
        return f"cpu {torch.backends.cpu.get_cpu_capability()}"
    return f"{torch.cuda.device_count()} x {current_platform.get_device_name()}"


def _is_small(messages: Sequence[ChatMessage]) -> bool:
    characters = sum(len(each.content) + len(each.fields_json) for each in messages)
    return len(messages) <= _MAX_SMALL_MESSAGES and characters <= _MAX_SMALL_CHARACTERS


def _reason(error: BaseException) -> str:
    return reason_in_error(str(error)) or type(error).__name__
