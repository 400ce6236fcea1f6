"""Lines of an OpenAI batch on the real engine: Proctor against `vllm run-batch`, by turns, on fresh engines.

`run-batch` sends all its lines at once and tells their rate, from the first request to the last answer; what
it does before and after is left out. Proctor's time is that of its worker, from the first shard that it began
to the last one that it acknowledged, whose answers are in the stream by then. The whole run, from submit to
stored summary, is printed beside it. Before it, a run of one other line has the model loaded.
"""

import asyncio
import io
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from proctor.client.datasets import Upload
from proctor.stack.options import vllm_pool
from proctor.v1 import run_pb2
from proctor.values.providers.pool import PoolModel
from proctor.values.run import FINAL_NUMBERS
from tests.bench.engine.async_llm_alone import CPU_ENVIRONMENT
from tests.bench.engine.engine_throughput import ENGINE_ARGS, MODEL, starter_model, vllm_python
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

LINES = 1_000
TRIALS = 3
BATCH = Path(os.environ.get("PROCTOR_DATA_DIR", "../shared/data")) / "batch" / "batch_5000.jsonl"
# As the worker has it.
ENVIRONMENT = {**CPU_ENVIRONMENT, "TORCH_COMPILE_DISABLE": "1"}
# Another beginning than the lines have, so that nothing of theirs is in the prefix cache.
WARM_UP = b'{"prompt": "Ready?"}\n'
_RATE = re.compile(r"100% Completed \| (\d+)/\1 .*?([0-9.]+)req/s\]")


@dataclass(frozen=True)
class InProctor:
    """Seconds of the worker, and of the run as a whole."""

    worker: float
    whole: float


def batch_lines() -> bytes:
    """The first lines with the name that the model is served by."""
    documents = [json.loads(line) for line in BATCH.read_text(encoding="utf-8").splitlines()[:LINES]]
    for document in documents:
        document["body"]["model"] = MODEL
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


async def seconds_of_run_batch(folder: Path, lines: bytes) -> float:
    """From its first request to its last answer, in a process of its own."""
    (folder / "lines.jsonl").write_bytes(lines)
    process = await asyncio.create_subprocess_exec(
        str(vllm_python().with_name("vllm")), "run-batch", *run_batch_arguments(folder),
        env={**os.environ, **ENVIRONMENT}, stdout=-1, stderr=-2,
    )  # fmt: skip
    output, _ = await process.communicate()
    rates = _RATE.findall(output.decode(errors="replace"))
    answered = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    if process.returncode or not rates or any(line["error"] for line in answered) or len(answered) != LINES:
        raise SystemExit("vllm run-batch did not answer every line; is .venv-vllm complete?")
    return LINES / float(rates[-1][1])


def run_batch_arguments(folder: Path) -> Sequence[str]:
    files = ["-i", str(folder / "lines.jsonl"), "-o", str(folder / "answers.jsonl")]
    model = ["--model", str(starter_model()), "--served-model-name", MODEL]
    options: list[str] = []
    for name, value in ENGINE_ARGS.items():
        options += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return [*files, *model, *options]


async def seconds_in_proctor(folder: Path, lines: bytes) -> InProctor:
    pool = vllm_pool(PoolModel(MODEL, str(starter_model()), ENGINE_ARGS))
    order = StackOrder(pools=(pool,), environment={})
    async with stack_harness(folder, order) as stack:
        # The model is loaded by the first work that there is.
        await run_lines(stack, "warm-up", WARM_UP)
        started = time.perf_counter()
        run = await run_lines(stack, "lines", lines)
        whole = time.perf_counter() - started
        failed = sum(run.progress.failures.values())
        if run.progress.recorded != LINES or failed:
            raise SystemExit(f"{failed} of {run.progress.recorded} lines failed.")
        return InProctor(seconds_of_worker(folder / "state" / "logs", run.run_id), whole)


async def run_lines(stack: StackHarness, name: str, lines: bytes) -> run_pb2.Run:
    """Uploads them and runs them to the end."""
    uploaded = await stack.client.upload_dataset(Upload(io.BytesIO(lines), f"{name}.jsonl"))
    run_id = await stack.submit(run_pb2.RunOrder(dataset_id=uploaded.dataset.dataset_id, model=MODEL))
    async for run in stack.client.watch_run(run_id):
        if run.state in FINAL_NUMBERS:
            if run.state != run_pb2.RUN_STATE_COMPLETED:
                raise SystemExit(f"The run went wrong: {run.error.message}")
            return run
    raise SystemExit("The run was watched to no end.")


def seconds_of_worker(logs: Path, run_id: str) -> float:
    """From the beginning of the first shard to the end of the last one, by the lines that the worker logs."""
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in logs.glob("worker*"))
    shards = [
        line
        for text in texts
        for line in map(read_log_line, text.splitlines())
        if line.get("event") == "shard" and line.get("run_id") == run_id
    ]
    ends = [datetime.fromisoformat(line["timestamp"]).timestamp() for line in shards]
    return max(ends) - min(end - float(line["seconds"]) for end, line in zip(ends, shards, strict=True))


def read_log_line(text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


async def main() -> None:
    lines = batch_lines()
    alone: list[float] = []
    within: list[InProctor] = []
    for _ in range(TRIALS):
        with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
            alone.append(await seconds_of_run_batch(Path(folder), lines))
            within.append(await seconds_in_proctor(Path(folder) / "stack", lines))
    print_rates(alone, within)


def print_rates(alone: Sequence[float], within: Sequence[InProctor]) -> None:
    table = Table(title=f"{LINES:,} lines of an OpenAI batch, requests/s on a fresh engine")
    for heading in ("trial", "vllm run-batch", "Proctor", "ratio", "Proctor, submit to summary"):
        table.add_column(heading, justify="right" if heading != "trial" else "left")
    for number, (by_vllm, by_proctor) in enumerate(zip(alone, within, strict=True), start=1):
        add_rates(table, str(number), by_vllm, by_proctor)
    middle = InProctor(
        statistics.median(each.worker for each in within), statistics.median(each.whole for each in within)
    )
    add_rates(table, "median", statistics.median(alone), middle)
    Console(width=100).print(table)


def add_rates(table: Table, name: str, alone: float, within: InProctor) -> None:
    rates = (LINES / alone, LINES / within.worker, alone / within.worker, LINES / within.whole)
    table.add_row(name, f"{rates[0]:.0f}", f"{rates[1]:.0f}", f"{rates[2]:.2f}", f"{rates[3]:.0f}")
