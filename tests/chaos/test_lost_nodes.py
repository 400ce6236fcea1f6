"""NATS on three nodes, two Postgres and two of each service: whatever is lost, a run ends right."""

import json
from collections.abc import AsyncIterator

import nats
import pytest
import pytest_asyncio

from tests.chaos.faults.faulted_run import GROWN_SHARD_SAMPLES, LARGE_ROWS, FaultedRun
from tests.chaos.faults.run_audit import assert_right
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.nodes.nodes_stack import NodesStack
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(rows=LARGE_ROWS), NodesStack) as stack:
            yield stack


def nodes_of(stack: StackHarness) -> NodesStack:
    assert isinstance(stack.stack, NodesStack)
    return stack.stack


def node_of_leader(stack: StackHarness) -> str:
    """That of the newest term in the logs of the schedulers."""
    terms = {}
    for node in ("a", "b"):
        log = stack.stack.options.state_dir / "logs" / f"scheduler.{node}.log"
        for line in log.read_text(encoding="utf-8").splitlines():
            if '"leading"' in line:
                terms[json.loads(line)["fencing_token"]] = node
    return terms[max(terms)]


async def test_the_streams_have_three_replicas(stack: StackHarness) -> None:
    connection = await nats.connect(stack.stack.nats_url.split(","))

    async def all_have_three() -> bool:
        infos = await connection.jetstream().streams_info()
        return [info.config.num_replicas for info in infos] == [3] * 7

    try:
        # Each service makes those that it needs, some of them after it is ready.
        await eventually(all_have_three, "seven streams have three replicas")
    finally:
        await connection.close()


async def test_run_outlives_the_loss_of_a_node(stack: StackHarness) -> None:
    """With the scheduler that leads, a server of NATS and one of each other service."""
    nodes = nodes_of(stack)
    run = await FaultedRun.start(stack)
    lost = nodes.of_node(node_of_leader(stack))
    await run.strike_at(0.3, lambda: nodes.lose(lost))
    await assert_right(run)
    await nodes.bring_back(lost)


@pytest.mark.thorough
async def test_run_whose_shards_have_grown_outlives_the_loss_of_a_node(stack: StackHarness) -> None:
    nodes = nodes_of(stack)
    run = await FaultedRun.start(stack, total=LARGE_ROWS)
    lost = nodes.of_node(node_of_leader(stack))
    await run.strike_at(0.3, lambda: nodes.lose(lost))
    async with stack.database() as database:
        sizes = await database.fetch(
            "SELECT DISTINCT cardinality(samples) AS size FROM scheduler.shards WHERE run_id = $1", run.run_id
        )
    assert GROWN_SHARD_SAMPLES in {row["size"] for row in sizes}
    await assert_right(run)
    await nodes.bring_back(lost)


# `make test` loses one with a node.
@pytest.mark.thorough
@pytest.mark.parametrize("node", ["a", "b", "c"])
async def test_run_outlives_the_loss_of_a_server_of_nats(stack: StackHarness, node: str) -> None:
    nodes = nodes_of(stack)
    run = await FaultedRun.start(stack)
    await run.strike_at(0.3, lambda: nodes.lose([f"nats.{node}"]))
    await assert_right(run)
    await nodes.bring_back([f"nats.{node}"])


@pytest.mark.thorough
async def test_run_outlives_a_node_that_hangs(stack: StackHarness) -> None:
    """Of the leader: its connections stay open, and nothing is refused."""
    nodes = nodes_of(stack)
    run = await FaultedRun.start(stack)
    hung = [name for name in nodes.of_node(node_of_leader(stack)) if not name.startswith("nats.")]

    async def nothing() -> None:
        pass

    await run.strike_at(0.3, nothing)
    with nodes.frozen(hung):
        await assert_right(run)


@pytest.mark.thorough
async def test_run_outlives_the_loss_of_the_primary_of_postgres(stack: StackHarness) -> None:
    run = await FaultedRun.start(stack)
    await run.strike_at(0.3, nodes_of(stack).fail_over)
    await assert_right(run)
