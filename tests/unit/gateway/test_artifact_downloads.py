"""A download of an artifact is whole, or visibly broken off where the artifact is stored anew meanwhile."""

# ruff: noqa: N802 - the name is that of the generated service

from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import artifact_service_pb2 as artifact_pb2
from services.gateway.api.artifacts import RolloutKey, download

PARTS = [b"first ", b"second ", b"third"]


class Artifacts:
    """The scheduler's service. `changed_at`: the part from which on the artifact is another one."""

    def __init__(self, changed_at: int = 99) -> None:
        self._changed_at = changed_at

    async def ReadArtifact(
        self, request: artifact_pb2.ReadArtifactRequest
    ) -> artifact_pb2.ReadArtifactResponse:
        artifact = artifact_pb2.Artifact(
            execution=request.execution,
            name=request.name,
            size_bytes=sum(map(len, PARTS)),
            parts=len(PARTS),
            stored_at=Timestamp(seconds=1 + (request.part >= self._changed_at)),
        )
        return artifact_pb2.ReadArtifactResponse(content=PARTS[request.part], artifact=artifact)


@pytest.mark.parametrize(("changed_at", "count"), [(99, 3), (2, 2), (1, 1)])
async def test_a_download_holds_all_parts_of_one_version(changed_at: int, count: int) -> None:
    scheduler = cast("Any", SimpleNamespace(artifacts=Artifacts(changed_at)))
    response = await download(scheduler, RolloutKey("job", 4, 1), "0" * 32, "trajectory.json")
    assert response.headers["content-length"] == str(sum(map(len, PARTS)))
    assert [part async for part in response.body_iterator] == PARTS[:count]
