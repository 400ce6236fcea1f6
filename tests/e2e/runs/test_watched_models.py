"""Each model of a list becomes a run, once however often a watch looks, and is held to a reference."""

import pytest

from proctor.v1 import run_pb2
from tests.e2e.harness.entry_points import proctor
from tests.e2e.harness.run_ends import ended
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"
WATCH = f'watch-models "openai/*" --suite {SUITE} --name frontier --against {MODEL} --limit 5 --json'


async def test_models_of_a_list_are_run_once_and_gated_against_the_reference(stack: StackHarness) -> None:
    first = await proctor(stack, WATCH)
    assert first.code == 0, first.err
    runs = {one["model"]: one["run_id"] for one in first.document["watched"]}
    assert runs.keys() == {MODEL, OTHER}
    for run_id in runs.values():
        run = await ended(stack, run_id)
        assert (run.state, run.order.priority) == (run_pb2.RUN_STATE_COMPLETED, run_pb2.PRIORITY_LOW)
        assert (run.labels.name, list(run.labels.tags)) == ("frontier", ["watch"])
    # Another process, as of cron: it finds the runs of the first one.
    again = await proctor(stack, WATCH)
    watched = {one["model"]: one for one in again.document["watched"]}
    assert {model: one["run_id"] for model, one in watched.items()} == runs
    assert watched[MODEL]["verdict"] is None
    assert watched[OTHER]["verdict"] in ("pass", "fail", "inconclusive")
    assert again.code == (1 if watched[OTHER]["verdict"] == "fail" else 0)


async def test_what_cannot_be_ordered_is_said_and_tried_again(stack: StackHarness) -> None:
    line = "watch-models openai/fake --suite absent --name nothing --json"
    for _ in range(2):
        end = await proctor(stack, line)
        [one] = end.document["watched"]
        assert (end.code, one["run_id"], one["verdict"]) == (0, None, None)
        assert one["problem"].startswith("Invalid benchmark suite")
    assert (await proctor(stack, "watch-models --suite x --name ' '")).code == 2
