"""Bounds of what a hostile program at a model's port takes of its worker: connections, memory and time."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
import pytest

from proctor.values.usage import TokenUsage
from services.worker.rollouts.model_port import http
from services.worker.rollouts.model_port.http import _MAX_CONNECTIONS, _MAX_REFUSED, served_model
from services.worker.rollouts.model_port.model_call import CONTEXT_FULL, CallRefused, ModelAnswer, ModelCall
from services.worker.rollouts.trajectory import Trajectory
from tests.fakes.eventually import eventually

TOKEN = "the rollout's own"
CHAT = "/v1/chat/completions"
SAID = {"messages": [{"role": "user", "content": "Mend it."}]}
AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class SlowModel:
    calls: list[ModelCall] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, call: ModelCall) -> ModelAnswer:
        self.calls.append(call)
        await self.may_answer.wait()
        return ModelAnswer("Look.", [], TokenUsage(1, 1))


@dataclass(frozen=True)
class Port:
    number: int
    model: SlowModel

    async def post(self, content: bytes) -> int:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
            session.post(
                f"http://127.0.0.1:{self.number}{CHAT}",
                data=io.BytesIO(content),
                headers={"Authorization": f"Bearer {TOKEN}"},
            ) as response,
        ):
            return response.status


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    model = SlowModel()
    listening = socket.create_server(("127.0.0.1", 0))
    number = listening.getsockname()[1]
    async with served_model(listening, TOKEN, model.answer):
        yield Port(number, model)


async def test_connections_beyond_a_bound_are_cut_off(port: Port) -> None:
    port.model.may_answer.set()
    opened = [await asyncio.open_connection("127.0.0.1", port.number) for _ in range(3 * _MAX_CONNECTIONS)]
    try:
        await eventually(
            lambda: sum(reader.at_eof() for reader, _ in opened) == 2 * _MAX_CONNECTIONS,
            "the others are cut off",
        )
        for _, writer in opened[:4]:
            writer.close()

        async def is_answered() -> bool:
            try:
                return await port.post(json.dumps(SAID).encode()) == 200
            except aiohttp.ClientError:
                return False

        await eventually(is_answered, "there is room again")
    finally:
        for _, writer in opened:
            writer.close()


async def test_one_call_at_a_time_is_read(port: Port) -> None:
    calls = [asyncio.create_task(port.post(json.dumps(SAID).encode())) for _ in range(8)]
    await eventually(lambda: len(port.model.calls) == 1, "the first is answered")
    # Many turns of the event loop later the others have not been read.
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(port.model.calls) == 1
    port.model.may_answer.set()
    assert await asyncio.gather(*calls) == [200] * 8


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"messages": [' + b"[]," * 1_000_000 + b"[]]}", 413),
        (json.dumps({"messages": SAID["messages"] * 8193}).encode(), 400),
        (b"[" * 100_000, 400),
    ],
)
async def test_body_that_takes_much_more_than_its_text_is_refused(
    port: Port, content: bytes, status: int
) -> None:
    assert await port.post(content) == status
    assert not port.model.calls


async def test_program_whose_calls_are_refused_again_and_again_is_answered_no_more(port: Port) -> None:
    port.model.may_answer.set()
    assert [await port.post(b"{}") for _ in range(_MAX_REFUSED)] == [400] * _MAX_REFUSED
    assert await port.post(json.dumps(SAID).encode()) == 403
    assert not port.model.calls


async def test_body_that_stalls_holds_the_calls_of_its_rollout_for_a_while_only(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_BODY_SECONDS", 0.2)
    port.model.may_answer.set()
    reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n{{"
    writer.write(head.encode())
    try:
        # The stalled call is the first: its refusal comes before the other is answered.
        async with asyncio.timeout(20):
            assert b" 408 " in await reader.readline()
        assert await port.post(json.dumps(SAID).encode()) == 200
    finally:
        writer.close()


async def test_history_that_is_too_long_is_not_counted_as_a_refused_call() -> None:
    answered = 0

    async def answer(_: ModelCall) -> ModelAnswer:
        nonlocal answered
        answered += 1
        if answered <= _MAX_REFUSED + 1:
            raise CallRefused(400, "Too long.", CONTEXT_FULL)
        return ModelAnswer("Look.", [], TokenUsage(1, 1))

    listening = socket.create_server(("127.0.0.1", 0))
    number = listening.getsockname()[1]
    async with served_model(listening, TOKEN, answer):
        program = Port(number, SlowModel())
        codes = [await program.post(json.dumps(SAID).encode()) for _ in range(_MAX_REFUSED + 2)]
    assert codes == [400] * (_MAX_REFUSED + 1) + [200]


@pytest.mark.timeout(20)
def test_trajectory_of_a_program_that_shows_anything_stays_small() -> None:
    trajectory = Trajectory("session", "agent", "model")
    trajectory.add_answer("I look.", TokenUsage(1, 1), AT)
    trajectory.add_call("call_1", "shell", "{}")
    for number in range(200_000):
        trajectory.add_result(f"unknown {number}", "x" * 1000, AT)
        trajectory.add("user", "", AT)
    trajectory.add_result("call_1", "what came of it", AT)
    trajectory.add_answer("I am done.", TokenUsage(1, 1), AT)
    assert len(trajectory.steps) < 20_000
    assert len(json.dumps(trajectory.as_json())) < 10_000_000
    assert "trajectory is full" in str(trajectory.steps[-2]["message"])
    assert trajectory.last_message == "I am done."
