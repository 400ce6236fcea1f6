"""`proctor open`: the page of what has an id, at the stack of the folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.stack.state import StackLock, StackState, write_stack_state
from proctor.v1 import rollout_service_pb2, run_pb2
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.stack.command_line import CommandLine

RUN = "8f3c2a10-0000-4000-8000-000000000001"
ORDER = "8f3c2a10-0000-4000-8000-000000000002"


@pytest.fixture
def here(harness: GatewayHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """A command line in the folder of a stack that serves; the browser is a program that does nothing."""
    monkeypatch.setenv("BROWSER", "true")
    lock = StackLock.take(tmp_path)
    http = harness.http.removeprefix("http://")
    write_stack_state(tmp_path, StackState(1, "running", http, harness.grpc, "", ""))
    yield CommandLine(harness.grpc, tmp_path)
    lock.release()


async def test_an_id_opens_the_page_of_a_run_or_of_an_order(
    harness: GatewayHarness, here: CommandLine
) -> None:
    harness.scheduler.put(run_pb2.Run(run_id=RUN, state=run_pb2.RUN_STATE_COMPLETED))
    harness.scheduler.rollouts.orders.append(rollout_service_pb2.RolloutsOrder(order_id=ORDER, suite="mine"))
    for given, path in (("", "/"), (RUN, f"/runs/{RUN}"), (ORDER.upper(), f"/rollouts/{ORDER}")):
        opened = await here("open", *([given] if given else []), "--json")
        assert opened.code == 0, opened.err
        assert opened.document["address"] == f"{harness.http}{path}"


async def test_an_id_of_nothing_opens_no_page(here: CommandLine) -> None:
    unknown = await here("open", RUN)
    assert (unknown.code, unknown.out) == (4, "")
    assert RUN in unknown.err
    word = await here("open", "latest")
    assert (word.code, word.out) == (4, "")
    assert "latest is not an id" in word.err


async def test_a_run_that_goes_on_has_a_link_to_its_page(harness: GatewayHarness, here: CommandLine) -> None:
    ended = await here("run", "--suite", "glue", "--model", "vllm/starter", "--detach")
    assert ended.code == 0, ended.err
    assert f"Its page: {harness.http}/runs/" in ended.out
