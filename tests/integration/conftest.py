"""What tests of a gateway over fake backends share; tests of another service have a stand of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.command_line import CommandLine
from tests.fakes.dataset_service import FakeDatasets
from tests.fakes.gateway_stand import GatewayStand, gateway_stand


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
