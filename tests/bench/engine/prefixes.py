"""Effect of the order of few-shot questions: hits of vLLM's prefix cache in order and shuffled."""

import asyncio
import json
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.engine.engine_throughput import starter_model, vllm_python


async def main() -> None:
    process = await asyncio.create_subprocess_exec(
        str(vllm_python()),
        "-m",
        "tests.bench.engine.prefix_orders",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    output, _ = await process.communicate(json.dumps({"model": str(starter_model())}).encode())
    if process.returncode:
        raise SystemExit("vLLM did not run; is .venv-vllm complete?")
    print_hits(json.loads(output.splitlines()[-1]))


def print_hits(seen: dict[str, dict[str, dict[str, float]]]) -> None:
    table = Table(title="Five-shot questions of 57 subjects")
    for heading in ("cache", "asked", "prefix hits", "seconds"):
        table.add_column(heading, justify="right" if heading in ("prefix hits", "seconds") else "left")
    for cache, orders in seen.items():
        for order, figures in orders.items():
            hits = f"{figures['hit_rate']:.0%}" if figures["queries"] else "not looked up"
            table.add_row(cache, order, hits, f"{figures['seconds']:.1f}")
    Console(width=100).print(table)
