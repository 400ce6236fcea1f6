"""`proctor rollouts artifacts` where an artifact is deleted while it is read."""

from pathlib import Path
from typing import Any

import pytest

from proctor.cli.rollouts.artifacts import _Fetch
from proctor.client.errors import ClientError
from proctor.v1 import artifact_service_pb2 as artifact_pb2
from proctor.v1 import outcome_pb2


def stored(moment: int) -> artifact_pb2.Artifact:
    artifact = artifact_pb2.Artifact(name="verifier.log", execution="e1", parts=1, size_bytes=3)
    artifact.stored_at.FromSeconds(moment)
    return artifact


class RetriedRollout:
    """An artifact that is listed once; its parts are those of a later one."""

    def __init__(self) -> None:
        self.lists = [[stored(1)], []]

    async def ListArtifacts(self, _: Any) -> artifact_pb2.ListArtifactsResponse:  # noqa: N802  # as in the contract
        return artifact_pb2.ListArtifactsResponse(artifacts=self.lists.pop(0))

    async def ReadArtifact(self, _: Any) -> artifact_pb2.ReadArtifactResponse:  # noqa: N802  # same
        return artifact_pb2.ReadArtifactResponse(artifact=stored(2), content=b"new")


async def test_an_artifact_that_vanishes_is_said_in_a_sentence(tmp_path: Path) -> None:
    fetch = _Fetch(RetriedRollout(), "run", outcome_pb2.Outcome(), tmp_path)  # type: ignore[arg-type]  # its reads
    with pytest.raises(ClientError, match=r"verifier\.log of .* changes while it is read"):
        await fetch.all()
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
