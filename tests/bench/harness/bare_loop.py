"""The floor of what a sample costs: aiohttp, uvloop and orjson ask the same rows of the same server.

`python -m tests.bench.harness.bare_loop URL SUITES SAMPLES` prints CPU seconds per 1,000 samples: read a row,
ask, read the answer, compare it, write a line. Nothing is scheduled, queued, stored safely or repeated.
"""

import asyncio
import sys
import time
from itertools import islice
from pathlib import Path

import aiohttp
import orjson
import uvloop

from tests.harness.keyed_suite import SUITE

CONCURRENCY = 64
# What is loaded on first use is not a cost per sample.
FIRST = 200


async def cpu_seconds_of_bare_loop(url: str, suites: Path, samples: int) -> float:
    """In a process of its own, per 1,000 samples."""
    command = (sys.executable, "-m", __name__, url, str(suites), str(samples))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    return float(printed)


async def _ask_all(url: str, rows: list[bytes], written: Path) -> None:
    waiting = iter(rows)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:
        with written.open("wb") as file:

            async def ask_repeatedly() -> None:
                for row in waiting:
                    file.write(await _ask(session, url, orjson.loads(row)))

            async with asyncio.TaskGroup() as group:
                for _ in range(CONCURRENCY):
                    group.create_task(ask_repeatedly())


async def _ask(session: aiohttp.ClientSession, url: str, row: dict[str, str]) -> bytes:
    prompt = f"{row['passage']}\nSay the key. KEY={row['key']}"
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "fake", "messages": messages, "temperature": 0.0, "max_tokens": 64}
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}/chat/completions", data=orjson.dumps(body), headers=headers) as response:
        answer = orjson.loads(await response.read())
    text = answer["choices"][0]["message"]["content"]
    line = {"key": row["key"], "answer": text, "is_right": text == f"The answer is {row['key']}."}
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


async def _measure(url: str, suites: Path, samples: int) -> float:
    with (suites / SUITE / "rows.jsonl").open("rb") as file:
        rows = list(islice(file, samples))
    written = suites.parent / "bare_loop.jsonl"
    await _ask_all(url, rows[:FIRST], written)
    before = time.process_time()
    await _ask_all(url, rows, written)
    took = time.process_time() - before
    right = sum(orjson.loads(line)["is_right"] for line in written.read_bytes().splitlines())
    if right != samples:
        raise SystemExit(f"The bare loop had {right} of {samples} right.")
    return took / samples * 1000


if __name__ == "__main__":
    print(uvloop.run(_measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
