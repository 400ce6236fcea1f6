"""Fixtures of several files: a gateway over fake backends, a NATS. Other services have harnesses."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.gateway.dataset_service import FakeDatasets
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.stack.command_line import CommandLine
from tests.harness.servers import RunningServer, nats_server


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running


@pytest.fixture
def datasets(harness: GatewayHarness) -> FakeDatasets:
    return harness.scheduler.datasets


@pytest.fixture
def proctor(harness: GatewayHarness, tmp_path: Path) -> CommandLine:
    return CommandLine(harness.grpc, tmp_path / "state")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    return path


@pytest.fixture
async def nats() -> AsyncIterator[RunningServer]:
    async with nats_server() as server:
        yield server
