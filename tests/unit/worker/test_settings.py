"""A worker refuses settings with which it could not work."""

import pytest
from pydantic import ValidationError

from services.common.nats.streams import HEARTBEAT_TTL_SECONDS, MAX_HEARTBEAT_SECONDS
from services.worker.settings import WorkerSettings
from services.worker.topics import HEARTBEAT_POLL_SECONDS


@pytest.mark.parametrize(
    ("interval", "lost"), [(WorkerSettings().heartbeat_seconds, 3), (MAX_HEARTBEAT_SECONDS, 2)]
)
def test_lost_heartbeats_do_not_make_a_worker_seem_dead(interval: float, lost: int) -> None:
    assert WorkerSettings(heartbeat_seconds=interval).heartbeat_seconds == interval
    assert (lost + 1) * (interval + HEARTBEAT_POLL_SECONDS) < HEARTBEAT_TTL_SECONDS


@pytest.mark.parametrize("seconds", [4.1, 20])
def test_a_worker_that_could_seem_dead_between_heartbeats_does_not_start(seconds: float) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 4"):
        WorkerSettings(heartbeat_seconds=seconds)
