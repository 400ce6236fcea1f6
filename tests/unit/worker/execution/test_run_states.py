"""Which shards a run still waits for."""

from datetime import UTC, datetime

import pytest

from proctor.v1 import run_pb2, work_messages_pb2
from proctor.values.run import RunId
from services.common.nats.bucket import BucketEntry
from services.worker.execution.nats import _apply
from services.worker.execution.run_states import RunControl, RunStates
from tests.fakes.worker.held_message import a_shard

RUN = RunId("run-1")


def test_an_unknown_run_is_current() -> None:
    assert RunStates().is_current(a_shard(1))


@pytest.mark.parametrize(
    ("control", "is_wanted"),
    [
        (RunControl(epoch=2, is_final=False), True),
        (RunControl(epoch=2, is_final=True), False),
        (RunControl(epoch=3, is_final=False), False),
        (RunControl(epoch=3, is_final=True), False),
        # The shard of a retry overtook the news of it.
        (RunControl(epoch=1, is_final=True), True),
    ],
)
def test_a_shard_is_current_in_the_epoch_of_its_run_until_that_is_finished(
    control: RunControl, *, is_wanted: bool
) -> None:
    states = RunStates()
    states.put(RUN, control)
    assert states.is_current(a_shard(1, epoch=2)) is is_wanted
    states.forget(RUN)
    assert states.is_current(a_shard(1, epoch=2))


@pytest.mark.parametrize(
    ("control", "may_start"),
    [
        (RunControl(epoch=2, is_final=False), True),
        (RunControl(epoch=2, is_final=False, has_slot=False), False),
        (RunControl(epoch=2, is_final=True), False),
        # The shard of a later epoch overtook the news of its place.
        (RunControl(epoch=1, is_final=False, has_slot=False), True),
    ],
)
def test_a_shard_starts_only_while_its_run_has_a_slot(control: RunControl, *, may_start: bool) -> None:
    states = RunStates()
    assert states.may_start(a_shard(1, epoch=2))
    states.put(RUN, control)
    assert states.may_start(a_shard(1, epoch=2)) is may_start


@pytest.mark.parametrize("value", [b"", b'{"type":"io.nats.jetstream.api.v1.stream_info_response"}'])
def test_what_the_scheduler_did_not_write_leaves_the_state_before(value: bytes) -> None:
    """NATS can be made to answer into the bucket of states (decision 0026)."""
    written = work_messages_pb2.RunControl(epoch=2, state=run_pb2.RUN_STATE_CANCELLED).SerializeToString()
    states = RunStates()
    for each in (written, value):
        _apply(BucketEntry(RUN, each, datetime(2026, 1, 1, tzinfo=UTC)), states)
    assert not states.is_current(a_shard(1, epoch=2))
