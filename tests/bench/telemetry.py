"""Cost of traces: CPU per sample without them, with a share of 0.01, and where every run is traced.

A stack of each kind stands, and runs go to one after the other in rounds: what else the machine does is alike
for all. A trace is that of a whole run. So with a share of 0.01 most runs take the path that is not sampled,
and the cost to expect is that of 99 such runs and one that is traced.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from proctor.stack.options import remote_pool
from proctor.values.providers.pool import Provider
from tests.bench.cost_per_sample import measure_run
from tests.bench.harness.instant_server import instant_server
from tests.fakes.trace_collector import TraceCollector, trace_collector
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

SAMPLES, ROUNDS, WARM_UP = 10_000, 7, 500
SHARE = 0.01
OFF, SAMPLED, TRACED = "off", f"share {SHARE:g}", "share 1"
SHARES: Mapping[str, float | None] = {OFF: None, SAMPLED: SHARE, TRACED: 1.0}
MAX_MORE = 0.03


def order_of(kind: str, server: str, collector: TraceCollector) -> StackOrder:
    pool = remote_pool(Provider("openai", server, "OPENAI_API_KEY"))
    share, environment = SHARES[kind], dict[str, str]()
    if share is not None:
        environment = {"PROCTOR_TRACES_ENDPOINT": collector.endpoint, "PROCTOR_TRACES_SHARE": str(share)}
    return StackOrder(rows=SAMPLES, is_long=True, pools=(pool,), environment=environment)


async def cpu_ms_per_sample(stack: StackHarness) -> float:
    measured = await measure_run(stack, SAMPLES)
    return sum(measured.cpu_seconds.values()) / SAMPLES * 1000


def print_costs(costs: Mapping[str, Sequence[float]], spans: int) -> None:
    """Each run is compared with that of its round without traces, so that a slow minute counts for both."""
    table = Table(title=f"CPU ms per sample, {ROUNDS} runs of {SAMPLES:,} samples each, in rounds")
    for column in ("traces", "median", "least", "most", "more than off", "quartiles of that"):
        table.add_column(column, justify="left" if column == "traces" else "right")
    more: dict[str, float] = {}
    for kind, found in costs.items():
        low, middle, high = quantiles(
            [cost / off - 1 for cost, off in zip(found, costs[OFF], strict=True)], n=4
        )
        more[kind] = middle
        shown = (f"{figure:.3f}" for figure in (median(found), min(found), max(found)))
        table.add_row(kind, *shown, f"{middle:+.1%}", f"{low:+.1%} to {high:+.1%}")
    expected = (1 - SHARE) * more[SAMPLED] + SHARE * more[TRACED]
    console = Console(width=100)
    console.print(table)
    console.print(
        f"Expected with 1 % sampling: {expected:+.2%} (bound: {MAX_MORE:+.0%}). "
        f"The collector got {spans:,} spans."
    )


async def main() -> None:
    costs: dict[str, list[float]] = {kind: [] for kind in SHARES}
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        server = await opened.enter_async_context(instant_server(folder))
        collector = await opened.enter_async_context(trace_collector())
        stacks = {}
        for number, kind in enumerate(SHARES):
            (own := folder / str(number)).mkdir()
            order = order_of(kind, server.url, collector)
            stacks[kind] = await opened.enter_async_context(stack_harness(own, order))
            await measure_run(stacks[kind], WARM_UP)
        for number in range(ROUNDS):
            # In the other order each time: the first of a round has no advantage.
            for kind in list(SHARES)[:: 1 if number % 2 == 0 else -1]:
                costs[kind].append(await cpu_ms_per_sample(stacks[kind]))
        spans = len(collector.spans)
    print_costs(costs, spans)
