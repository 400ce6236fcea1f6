"""Milliseconds of lists, at the server, with 100,000 stored runs: pages and REST, filtered, and far behind.

The aim (issue 41): each at most 60 ms. A page that lists runs is asked for as a browser asks for it.
"""

import tempfile
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
from rich.console import Console
from rich.table import Table

from tests.bench.pages.page_views import responses
from tests.bench.pages.stored_runs import MODELS, RUNS, StoredRuns, store_runs
from tests.bench.pages.viewing import real_pair
from tests.harness.stack_harness import StackOrder, stack_harness
from tests.harness.starter_model import SUITE as STARTER

_JOBS = "/api/v1/benchmarking/results"
# Of a list that is read page by page: as many pages as one looks through by hand.
_PAGES_BEHIND = 20
_FILTERS = {
    "": {},
    "a model": {"model": f"openai/m{MODELS // 2}"},
    "a suite": {"suite": "starter"},
    "a model and a suite": {"model": f"openai/m{MODELS // 2}", "suite": "starter"},
    "a state": {"state": "completed"},
    "a rare state": {"state": "failed"},
    "a project": {"project": "1"},
    "a part of a name": {"name": "zzz"},
    "a tag": {"tag": "zzz"},
    "days": {"days": "90"},
}
_NAMES_OF_REST = {"model": "model_name", "state": "status", "project": "project_id"}


async def main() -> None:
    order = StackOrder(rows=200, suites=(STARTER,), models=("fake", "other"), environment={})
    with tempfile.TemporaryDirectory() as folder:
        async with stack_harness(Path(folder), order) as stack:
            runs = await store_runs(stack, await real_pair(stack))
            url = f"http://{stack.stack.gateway_http}"
            found = await responses(url, {**_pages(runs), **_calls(), **await _calls_behind(url)})
    shown = Table(title=f"Lists with {RUNS:,} runs stored")
    for column in ("list", "ms", "worst", "status"):
        shown.add_column(column, justify="left" if column == "list" else "right")
    for name, (median, worst, status) in found.items():
        shown.add_row(name, f"{median:.0f}", f"{worst:.0f}", str(status))
    Console(width=110).print(shown)


def _pages(runs: StoredRuns) -> dict[str, str]:
    lists = {
        "overview": "/",
        "data set runs": "/datasets/runs",
        "compare, choice": "/compare",
        "a model's": f"/models/openai/m{MODELS // 2}",
        "leaderboard": "/leaderboard?suite=starter&include=limited",
        "leaderboard, time": "/leaderboard?suite=starter&include=limited&against=time",
        "rollouts": "/rollouts",
        "batches": "/batches",
        "queue": "/queue",
        "an id": f"/runs?id={runs.pair[0][:8]}",
    }
    filtered = {f"runs {name}".strip(): f"/runs?{urlencode(filters)}" for name, filters in _FILTERS.items()}
    return {f"page: {name}": path for name, path in {**filtered, **lists}.items()}


def _calls() -> dict[str, str]:
    lists = {
        "history": "/api/v1/benchmarking/history",
        "leaderboard": "/api/v1/benchmarking/leaderboard?suite=starter&include=limited",
        "data set runs": "/admin/benchmarks",
        "queue": "/api/v1/queue",
        "audit": "/api/v1/audit",
    }
    filtered = {}
    for name, filters in _FILTERS.items():
        named = {_NAMES_OF_REST.get(key, key): value for key, value in filters.items()}
        filtered[f"runs {name}".strip()] = f"{_JOBS}?{urlencode(named)}"
    return {f"REST: {name}": path for name, path in {**filtered, **lists}.items()}


async def _calls_behind(url: str) -> dict[str, str]:
    cursor = ""
    async with aiohttp.ClientSession() as session:
        for _ in range(_PAGES_BEHIND):
            query = urlencode({"limit": 100, **({"cursor": cursor} if cursor else {})})
            async with session.get(f"{url}{_JOBS}?{query}") as response:
                cursor = (await response.json())["next_cursor"]
    return {f"REST: runs, page {_PAGES_BEHIND}": f"{_JOBS}?{urlencode({'limit': 100, 'cursor': cursor})}"}
