"""Artifacts: stored in parts as they are made; none that fails fails a rollout."""

import gzip
import json
import os
import threading
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from services.worker.rollouts.artifacts import Artifacts
from services.worker.rollouts.errors import ArtifactNotStored
from services.worker.rollouts.trajectory import Trajectory

MIB = 1024 * 1024


@dataclass
class HandClock:
    at: float = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, tz=UTC)

    def monotonic(self) -> float:
        return self.at


@dataclass
class Sink:
    execution: str = "e"
    stored: dict[tuple[str, int], bytes] = field(default_factory=dict)
    refusal: ArtifactNotStored | None = None
    asked: int = 0

    async def put(self, name: str, part: int, content: bytes) -> None:
        self.asked += 1
        if self.refusal:
            raise self.refusal
        self.stored[name, part] = content


async def test_large_artifacts_are_parts_and_the_record_has_their_sizes() -> None:
    sink, content = Sink(), bytes(2 * MIB + 5)
    artifacts = Artifacts(sink, HandClock())
    await artifacts.store("verifier.log", content)
    await artifacts.store("diff.patch", b"")
    await artifacts.store_files(b"tar")
    assert [len(sink.stored["verifier.log", part]) for part in range(3)] == [MIB, MIB, 5]
    packed = sink.stored["files.tar.gz", 0]
    assert gzip.decompress(packed) == b"tar"
    sizes = {"verifier.log": len(content), "files.tar.gz": len(packed)}
    assert artifacts.facts == {"execution": "e", "artifacts": sizes}


async def test_the_trajectory_is_stored_now_and_then_while_an_agent_works() -> None:
    sink, clock = Sink(), HandClock()
    artifacts, trajectory = Artifacts(sink, clock), Trajectory("session", "agent", "model")
    for _ in range(10):
        trajectory.add("user", "More.", clock.now())
        await artifacts.checkpoint(trajectory)
        clock.at += 5.0
    assert sink.asked == 4
    assert len(json.loads(sink.stored["trajectory.json", 0])["steps"]) == 10


@pytest.mark.parametrize(("is_final", "asked"), [(True, 1), (False, 2)])
async def test_what_cannot_be_stored_is_said_in_the_record(*, is_final: bool, asked: int) -> None:
    sink = Sink(refusal=ArtifactNotStored("No room.", is_final=is_final))
    artifacts = Artifacts(sink, HandClock())
    for name in ("diff.patch", "verifier.log"):
        await artifacts.store(name, b"x")
    assert sink.asked == asked
    assert artifacts.facts == {
        "execution": "e",
        "artifacts": {},
        "artifacts_problem": "No room.",
    }


async def test_what_is_too_large_is_left_out() -> None:
    artifacts = Artifacts(Sink(), HandClock())
    await artifacts.store("verifier.log", bytes(16 * MIB + 1))
    assert "more than are stored" in str(artifacts.facts["artifacts_problem"])
    assert artifacts.stored == {}


async def test_files_that_are_too_large_are_refused_before_all_is_compressed() -> None:
    taken = 0

    class Tar(bytes):
        def __getitem__(self, part: Any) -> Any:
            nonlocal taken
            taken += 1
            return super().__getitem__(part)

    artifacts = Artifacts(Sink(), HandClock())
    await artifacts.store_files(Tar(os.urandom(32 * MIB)))
    assert taken < 20
    assert "files.tar.gz has more than" in str(artifacts.facts["artifacts_problem"])
    assert artifacts.stored == {}


async def test_files_are_compressed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    compressobj = zlib.compressobj

    def noted(**options: Any) -> Any:
        threads.append(threading.get_ident())
        return compressobj(**options)

    monkeypatch.setattr(zlib, "compressobj", noted)
    await Artifacts(Sink(), HandClock()).store_files(b"tar")
    assert threads
    assert threading.get_ident() not in threads


async def test_without_a_store_the_record_names_none() -> None:
    artifacts = Artifacts(None, HandClock())
    await artifacts.store_files(b"tar")
    assert artifacts.facts == {}


@pytest.mark.parametrize("arguments", ['{"command": "echo \\ud83d"}', '{"seconds": NaN}', "[" * 100_000])
async def test_a_trajectory_is_stored_whatever_a_model_writes_into_a_call(arguments: str) -> None:
    sink, clock = Sink(), HandClock()
    trajectory = Trajectory("session", "agent", "model")
    trajectory.add("agent", "", clock.now())
    trajectory.add_call("call_1", "bash", arguments)
    await Artifacts(sink, clock).store_trajectory(trajectory)
    [step] = orjson.loads(sink.stored["trajectory.json", 0])["steps"]
    assert step["tool_calls"][0]["tool_call_id"] == "call_1"
