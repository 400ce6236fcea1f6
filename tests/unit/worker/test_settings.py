"""A worker refuses settings with which it could not work."""

import pytest
from pydantic import ValidationError

from services.common.nats.streams import HEARTBEAT_TTL_SECONDS
from services.worker.settings import WorkerSettings


def test_two_heartbeats_may_be_lost_at_the_longest_interval() -> None:
    assert WorkerSettings(heartbeat_seconds=HEARTBEAT_TTL_SECONDS / 3).heartbeat_seconds == 5


@pytest.mark.parametrize("seconds", [5.1, 20])
def test_a_worker_that_would_seem_dead_between_heartbeats_does_not_start(seconds: float) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 5"):
        WorkerSettings(heartbeat_seconds=seconds)
