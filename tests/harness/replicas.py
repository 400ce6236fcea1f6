"""More of a service than a local stack starts: the same program and environment at an address of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType

from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.child import ChildContext, SupervisedChild
from tests.harness.forks.services import start_warm
from tests.harness.servers import START_SECONDS
from tests.harness.stack_harness import StackHarness

# Which setting tells where a replica listens.
REPLICAS: Mapping[str, str] = MappingProxyType(
    {
        "worker": "PROCTOR_WORKER_HEALTH_ADDRESS",
        "results": "PROCTOR_RESULTS_ADDRESS",
        "scheduler": "PROCTOR_SCHEDULER_ADDRESS",
    }
)


@asynccontextmanager
async def replica(
    stack: StackHarness, service: str, name: str = "second", **changes: str
) -> AsyncIterator[SupervisedChild]:
    """`name` tells it from the others; `changes` are variables of its own."""
    first = stack.stack.child(service).spec
    # The first one serves its metrics at the address that both would have.
    own = {REPLICAS[service]: choose_addresses(1)[0], "PROCTOR_METRICS_ADDRESS": "", **changes}
    program = replace(first.program, environment={**first.program.environment, **own})
    spec = replace(first, name=f"{name} {service}", program=program)
    log_path = stack.stack.options.state_dir / "logs" / f"{name}-{service}.log"
    context = ChildContext(log_path, lambda _: None, lambda: None, start=start_warm)
    child = SupervisedChild(spec, context)
    try:
        async with asyncio.timeout(START_SECONDS):
            await asyncio.shield(child.first_ready)
        yield child
    finally:
        await child.stop()
