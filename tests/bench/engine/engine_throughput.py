"""The engine inside Proctor against the engine alone: the same prompts, 64 output tokens each, in one run.

Alone: all requests at once, from the first to the last answer. Proctor: from submit to stored summary, with
planning, queue, recording and closing; the model is loaded in both before the clock starts.
"""

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from proctor.stack.defaults import starter_model_dir
from proctor.stack.options import vllm_pool
from proctor.v1 import run_pb2
from proctor.values.providers.pool import PoolModel
from proctor.values.run import FINAL_NUMBERS
from tests.harness.keyed_suite import STOP, keyed_prompts
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

SAMPLES = 1_500
WARM_UP = 64
MAX_TOKENS = 64
MODEL = "vllm/starter"
ENGINE_ARGS = {
    "dtype": "bfloat16",
    "max_model_len": 1024,
    "max_num_seqs": 64,
    "block_size": 32,
    "enforce_eager": True,
    "distributed_executor_backend": "uni",
}


def vllm_python() -> Path:
    return Path(os.environ.get("PROCTOR_VLLM_PYTHON", ".venv-vllm/bin/python")).absolute()


def starter_model() -> Path:
    return starter_model_dir(os.environ)


async def seconds_alone() -> float:
    """What AsyncLLM takes by itself, in a process of its own."""
    order = {
        "model": str(starter_model()),
        "engine_args": ENGINE_ARGS,
        "prompts": keyed_prompts(SAMPLES, is_long=False),
        "max_tokens": MAX_TOKENS,
        "stop": [STOP],
    }
    process = await asyncio.create_subprocess_exec(
        str(vllm_python()), "tests/bench/engine/async_llm_alone.py", stdin=-1, stdout=-1, stderr=-3
    )
    output, _ = await process.communicate(json.dumps(order).encode())
    if process.returncode:
        raise SystemExit("AsyncLLM alone did not run; is .venv-vllm complete?")
    return float(json.loads(output.splitlines()[-1])["seconds"])


async def seconds_in_proctor(stack: StackHarness, samples: int) -> float:
    """One run over the same prompts."""
    order = keyed_order(model=MODEL, limit=samples, prompt_form=run_pb2.PROMPT_FORM_COMPLETION)
    order.params.max_tokens = MAX_TOKENS
    order.params.provider_params.update({"ignore_eos": True})
    started = time.perf_counter()
    run_id = await stack.submit(order)
    async for run in stack.client.watch_run(run_id):
        if run.state in FINAL_NUMBERS and run.state != run_pb2.RUN_STATE_COMPLETED:
            raise SystemExit(f"The run went wrong: {run.error.message}")
    seconds = time.perf_counter() - started
    summary = await stack.client.summary(run_id)
    if summary.usage.completion_tokens != samples * MAX_TOKENS:
        raise SystemExit(f"Expected {samples * MAX_TOKENS} tokens, got {summary.usage.completion_tokens}.")
    return seconds


async def main() -> None:
    alone = await seconds_alone()
    model = PoolModel(MODEL, str(starter_model()), ENGINE_ARGS)
    pool = vllm_pool(model)
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        order = StackOrder(rows=SAMPLES, pools=(pool,), environment={})
        async with stack_harness(Path(folder), order) as stack:
            await seconds_in_proctor(stack, WARM_UP)
            within = await seconds_in_proctor(stack, SAMPLES)
    print_throughput({"AsyncLLM alone": alone, "Proctor, submit to summary": within})


def print_throughput(seconds: dict[str, float]) -> None:
    """Requests per second, and each against the first."""
    table = Table(title=f"{SAMPLES:,} requests of {MAX_TOKENS} output tokens")
    for heading in ("", "seconds", "requests/s", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    first = next(iter(seconds.values()))
    for name, taken in seconds.items():
        table.add_row(name, f"{taken:.2f}", f"{SAMPLES / taken:.0f}", f"{first / taken:.2f}")
    Console(width=100).print(table)
