"""What several files share: a gateway over fake backends, a NATS. Other services have stands of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.command_line import CommandLine
from tests.fakes.dataset_service import FakeDatasets
from tests.fakes.gateway_stand import GatewayStand, gateway_stand
from tests.servers import RunningServer, nats_server


@pytest.fixture
async def stand() -> AsyncIterator[GatewayStand]:
    async with gateway_stand() as running:
        yield running


@pytest.fixture
def datasets(stand: GatewayStand) -> FakeDatasets:
    return stand.scheduler.datasets


@pytest.fixture
def proctor(stand: GatewayStand, tmp_path: Path) -> CommandLine:
    return CommandLine(stand.grpc, tmp_path / "state")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    return path


@pytest.fixture
async def nats() -> AsyncIterator[RunningServer]:
    async with nats_server() as server:
        yield server
