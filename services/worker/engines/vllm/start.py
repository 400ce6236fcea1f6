"""Starts a vLLM engine for a model and those that share it; a failed start is reported by its cause.

vLLM reads its environment when it is imported, so this module is imported only after that is set.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import fields

import vllm
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.platforms import current_platform
from vllm.v1.engine.async_llm import AsyncLLM

from proctor.values.providers.pool import PoolModel
from services.worker.engines.errors import ModelCannotLoad
from services.worker.engines.vllm import error_text
from services.worker.engines.vllm.lifeline import children_die_with_us
from services.worker.engines.vllm.model_files import (
    VllmSettings,
    adapter_arguments,
    check_weights,
    cpu_engine_args,
    model_source,
    read_model_config,
)
from services.worker.engines.vllm.runtime import VllmRuntime
from services.worker.engines.vllm.written_reasoning import check_reasoning_parsers

# The tracebacks of all processes of an engine, with the log before them.
_KEPT_LINES = 400
# Failed processes end soon; one that hangs must not delay the answer.
_LAST_OUTPUT_SECONDS = 2.0
_SILENT_END = (
    "a process of the engine ended while it started and did not say why; "
    "most often too little memory was free, so try a smaller max_model_len or max_num_seqs"
)


class VllmOutput:
    """Copies the output of vLLM's processes to the worker's log and keeps its end (see `lifeline`)."""

    def __init__(self) -> None:
        read_end, self.write_end = os.pipe()
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reading = threading.Thread(target=self._read, args=(read_end,), name="vllm-output", daemon=True)
        self._reading.start()

    def close(self) -> None:
        """Call it once the processes have opened the pipe, which then ends with them."""
        os.close(self.write_end)

    def last_lines(self) -> Sequence[str]:
        self._reading.join(_LAST_OUTPUT_SECONDS)
        return list(self._kept)

    def _read(self, read_end: int) -> None:
        with open(read_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._kept.append(line.rstrip())
                sys.stderr.write(line)


def start_runtime(group: Sequence[PoolModel], settings: VllmSettings) -> VllmRuntime:
    """Blocks until the engine serves; call it from a thread that lives as long as the engine.

    The first of the group is the requested model; all have the same base weights.
    """
    model = group[0]
    arguments = _arguments(group, settings)
    check_weights(model)
    check_reasoning_parsers(group)
    output = VllmOutput()
    try:
        engine_args = AsyncEngineArgs(model=model_source(model), **arguments)
        with children_die_with_us(output.write_end):
            async_llm = AsyncLLM.from_engine_args(engine_args, stat_loggers=[])
    except (
        Exception
    ) as error:  # an edge: a start reads foreign files and may raise anything, even MemoryError
        # Before the lines are read: the pipe ends only when this end is closed too.
        output.close()
        reason = _reason(error, output.last_lines())
        raise ModelCannotLoad(f"vLLM cannot load the model {model.name}: {reason}") from error
    output.close()
    return VllmRuntime(model, async_llm)


def _arguments(group: Sequence[PoolModel], settings: VllmSettings) -> Mapping[str, object]:
    """The model's own `engine_args` win over the defaults here."""
    model = group[0]
    config = read_model_config(model)
    unknown = sorted(model.engine_args.keys() - {field.name for field in fields(AsyncEngineArgs)})
    if unknown:
        raise ModelCannotLoad(
            f"The engine_args of the model {model.name} name {unknown[0]}, which vLLM {vllm.__version__} "
            "does not know; write it as in vLLM's own AsyncEngineArgs, or leave it out."
        )
    return {
        "enable_prefix_caching": True,
        "enable_log_requests": False,
        **(cpu_engine_args(settings, config) if current_platform.is_cpu() else {}),
        **adapter_arguments(group),
        **model.engine_args,
    }


def _reason(error: Exception, printed: Sequence[str]) -> str:
    """The error itself, unless it only reports that a process of the engine failed."""
    text = str(error)
    if error_text.is_echo(text):
        return error_text.reason_in_output(printed) or _SILENT_END
    return error_text.reason_in_error(text) or type(error).__name__
