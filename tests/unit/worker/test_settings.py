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


@pytest.mark.parametrize(
    ("variables", "engine"),
    [
        ({}, "process"),
        ({"SANDBOX_BACKEND": " Modal "}, "modal"),
        ({"SANDBOX_BACKEND": ""}, "process"),
        ({"SANDBOX_BACKEND": "modal", "PROCTOR_WORKER_SANDBOX_ENGINE": "docker"}, "docker"),
    ],
)
def test_the_engine_of_sandboxes_may_be_that_of_scripts(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], engine: str
) -> None:
    for name in ("SANDBOX_BACKEND", "PROCTOR_WORKER_SANDBOX_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert WorkerSettings().sandbox_engine == engine


def test_an_unknown_engine_of_sandboxes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_BACKEND", "firecracker")
    with pytest.raises(ValidationError, match="'process', 'docker', 'kubernetes' or 'modal'"):
        WorkerSettings()


@pytest.mark.parametrize("seconds", [4.1, 20])
def test_a_worker_that_could_seem_dead_between_heartbeats_does_not_start(seconds: float) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 4"):
        WorkerSettings(heartbeat_seconds=seconds)
