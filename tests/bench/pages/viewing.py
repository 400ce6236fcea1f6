"""`pages`: first row, weight and filters with 10,000 runs and a run of 10⁶ samples. `live`: pushed pages.

The aims (issue 13): first row ≤ 500 ms cold and ≤ 250 ms warm, ≤ 130 kB and ≤ 7 requests; the results of the
large run ≤ 300 ms and each filter ≤ 1 s; 100 live pages under 5 % of a core, 1,000 under 25 %; a page whose
gateway is killed is live again within 1 s and is not loaded again.

`PROCTOR_PAGES_WATCHERS` and `PROCTOR_PAGES_KILLS` set how many pages watch, and how often a gateway is killed
(100,1000 and 10). All of `live` takes some three minutes.
"""

import os
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.bench.pages.killed_gateway import Outages, kill_gateways
from tests.bench.pages.live_pages import LivePages, watch_pages
from tests.bench.pages.page_views import Seen, cpu_of_responses, responses, view
from tests.bench.pages.stored_runs import RUNS, SAMPLES, StoredRuns, store_runs
from tests.bench.pages.stored_uploads import StoredUploads, store_uploads
from tests.e2e.harness.run_ends import completed
from tests.harness.browser import chromium
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import SUITE as STARTER

WATCHERS = tuple(map(int, os.environ.get("PROCTOR_PAGES_WATCHERS", "100,1000").split(",")))
MODELS = ("openai/fake", "openai/other")
_TIMES = ("cold ms", "worst", "warm ms", "worst", "same tab ms", "worst")
_VIEWED = ("page", *_TIMES, "kB", "requests", "CPU ms")


def pages_of(runs: StoredRuns, uploads: StoredUploads, going: str) -> dict[str, tuple[str, str]]:
    """By name the path of each page and what is seen of it first; `going` is a live run."""
    first, second = runs.pair
    rows = "main tbody th:visible"
    return {
        "overview": ("/", rows),
        "runs": ("/runs", rows),
        "a run": (f"/runs/{first}", rows),
        "a live run": (f"/runs/{going}", "table.tasks tbody th"),
        "rescore": (f"/runs/{first}/rescore", "#scoring select"),
        "new run": ("/runs/new", "main select"),
        "results": (f"/runs/{runs.large}/results", "table.answers tbody th"),
        "compare, choice": ("/compare", rows),
        "compare": (f"/compare?run={first}&run={second}", "table.forest tbody th"),
        "leaderboard": ("/leaderboard?suite=starter&include=limited", rows),
        "leaderboard, time": ("/leaderboard?suite=starter&include=limited&against=time", "svg.pareto"),
        "a model": (f"/models/{MODELS[0]}", rows),
        "suites": ("/suites", rows),
        "a suite": ("/suites/starter", "#sample pre"),
        "data sets": ("/datasets", rows),
        "a data set": (f"/datasets/{uploads.dataset_id}", "#preview *"),
        "data set runs": ("/datasets/runs", rows),
        "batches": ("/batches", rows),
        "a batch": (f"/batches/{uploads.batch_id}", "main h1"),
        "files": ("/batches/files", rows),
        "rollouts": ("/rollouts", rows),
        "an order": (f"/rollouts/{runs.rollouts.order_id}", "table.grid tbody th"),
        "rollouts of a run": (f"/runs/{runs.rollouts.run_id}/rollouts", "table.grid tbody th"),
        "a rollout": (f"/runs/{runs.rollouts.run_id}/rollouts/0/0", "#rollout dl.facts"),
        "queue": ("/queue", "main h1"),
        "settings": ("/settings", "main h1"),
        "sign in": ("/sign-in", "main input"),
        "(an empty page)": ("/healthz", "body"),
    }


def filters_of(runs: StoredRuns) -> dict[str, str]:
    path = f"/runs/{runs.large}/results"
    return {
        "none": path,
        "status right": f"{path}?status=right",
        "status wrong": f"{path}?status=wrong",
        "status failed": f"{path}?status=failed",
        "status unparsed": f"{path}?status=unparsed",
        "id, whole": f"{path}?row_id=row-{SAMPLES - 1}",
        "id, a part, once": f"{path}?row_id=w-{SAMPLES - 1}",
        "id, a part, common": f"{path}?row_id=ow-9",
        "id, nowhere": f"{path}?row_id=zzz",
        "text, common": f"{path}?text=grammatical",
        "text, once": f"{path}?text=Is+sentence+999999",
        "text, nowhere": f"{path}?text=zzz",
        "score": f"{path}?min_score=0.5&max_score=2",
        "length": f"{path}?min_characters=170",
        "length, none": f"{path}?min_characters=100000",
        "golden": f"{path}?marked=golden",
        "task": f"{path}?task=rows",
        "from the middle": f"{path}?from=500000",
        **{f"sort {order}": f"{path}?sort={order}" for order in ("-time", "score", "-length", "length")},
    }


async def main() -> None:
    console = Console(width=140)
    order = StackOrder(rows=200, suites=(STARTER,), models=("fake", "other"), environment={})
    with tempfile.TemporaryDirectory() as folder:
        async with stack_harness(Path(folder), order) as stack:
            runs = await store_runs(stack, await real_pair(stack))
            uploads = await store_uploads(stack)
            url = f"http://{stack.stack.gateway_http}"
            seen = {}
            console.print(_filters_table(await responses(url, filters_of(runs))))
            going = await _paused(stack)
            async with chromium() as browser:
                for name, (path, selector) in pages_of(runs, uploads, going).items():
                    seen[name] = await view(browser, url + path, selector)
                    seen[name].cpu_ms = await cpu_of_responses(stack, url + path)
            console.print(_views_table(seen))


async def live() -> None:
    """Pages that are pushed; the backends are fakes."""
    console = Console(width=140)
    # Each at once: what is measured is not lost where the rest fails.
    for watchers in WATCHERS:
        console.print(_live_table([await watch_pages(watchers)]))
    console.print(_outage_table(await kill_gateways()))


async def real_pair(stack: StackHarness) -> tuple[str, str]:
    orders = [run_pb2.RunOrder(project_id=1, suite="starter", model=model) for model in MODELS]
    first, second = [await completed(stack, order) for order in orders]
    return first, second


async def _paused(stack: StackHarness) -> str:
    """A run whose page is live, and which takes no CPU from the others."""
    run_id = await stack.submit(
        run_pb2.RunOrder(project_id=1, suite="starter", model=MODELS[0], rollouts=100)
    )
    await stack.client.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))
    return run_id


def _views_table(seen: Mapping[str, Seen]) -> Table:
    table = Table(title=f"First row, {RUNS:,} runs stored and one of {SAMPLES:,} samples")
    for column in _VIEWED:
        table.add_column(column, justify="left" if column == "page" else "right")
    for name, one in seen.items():
        figures = [
            f"{each:.0f}"
            for times in (one.cold_ms, one.warm_ms, one.next_ms)
            for each in (statistics.median(times), max(times))
        ]
        table.add_row(name, *figures, f"{one.kilobytes:.0f}", str(one.requests), f"{one.cpu_ms:.0f}")
    return table


def _filters_table(found: Mapping[str, tuple[float, float, int]]) -> Table:
    table = Table(title=f"Results of a run of {SAMPLES:,} samples")
    for column in ("filter", "ms", "worst", "status"):
        table.add_column(column, justify="left" if column == "filter" else "right")
    for name, (median, worst, status) in found.items():
        table.add_row(name, f"{median:.0f}", f"{worst:.0f}", str(status))
    return table


def _live_table(found: list[LivePages]) -> Table:
    table = Table(title="Live pages of one run, pushed five times a second")
    for column in (
        "pages",
        "CPU of the gateway, % of a core",
        "pushes/s of a page",
        "lag p50 ms",
        "lag p99 ms",
    ):
        table.add_column(column, justify="right")
    for one in found:
        lags = statistics.quantiles(one.lags_ms, n=100)
        row = (
            f"{100 * one.cpu_share:.1f}",
            f"{one.pushes_per_second:.1f}",
            f"{lags[49]:.0f}",
            f"{lags[98]:.0f}",
        )
        table.add_row(str(one.pages), *row)
    return table


def _outage_table(found: Outages) -> Table:
    table = Table(title="A gateway is killed while a page watches: two replicas, no stickiness")
    for column in ("kills", "live again after s", "worst", "same document"):
        table.add_column(column, justify="right")
    figures = f"{statistics.median(found.seconds):.2f}", f"{max(found.seconds):.2f}"
    table.add_row(str(len(found.seconds)), *figures, "yes" if found.is_same_document else "no")
    return table
