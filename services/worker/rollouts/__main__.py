"""Checks the tasks that come on stdin, one after the other: `proctor rollouts check` asks for it.

Each task is a message with its length before it, four bytes. Each result is a line of JSON.
"""

import asyncio
import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from typing import BinaryIO

from proctor.v1 import rollout_pb2
from proctor.values.rollout import RolloutTask
from proctor.wire.values import ROLLOUT_TASK
from services.common.clock import SystemClock
from services.common.sandboxes.sandbox import TarLimits
from services.worker.rollouts.check_soundness import CheckSoundness
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.rollouts.wiring import make_installers, make_packages
from services.worker.sandboxes.allowed_images import ANY_IMAGE
from services.worker.sandboxes.wiring import make_builder, make_sandboxes
from services.worker.settings import WorkerSettings
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.file_wheels import FileWheels
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout

_CANNOT_ISOLATE = 3


def read_tasks(stream: BinaryIO) -> Iterator[RolloutTask]:
    while length := stream.read(4):
        yield ROLLOUT_TASK.from_proto(
            rollout_pb2.RolloutTask.FromString(stream.read(int.from_bytes(length, "big")))
        )


async def check() -> int:
    # Who checks a task here operates this machine, and may use any image.
    settings = WorkerSettings(sandbox_images=ANY_IMAGE)
    engine = make_sandboxes(settings)
    clock = SystemClock()
    try:
        isolation = await engine.check()
        if isolation.problem:
            sys.stderr.write(f"This machine cannot isolate code: {isolation.problem}\n")
            return _CANNOT_ISOLATE
        execute_pytest = ExecutePytest(engine, pytest_runner, lambda: uuid.uuid4().hex)
        rollouts = ExecuteRollout(
            verifier=VerifyRollout(
                execute_pytest, FileWheels(settings.verifier_wheels).packed, make_packages(settings).find
            ),
            agents=ExecuteAgent(clock),
            slots=asyncio.Semaphore(1),
            clock=clock,
            collected=TarLimits(total_bytes=settings.rollout_max_bytes, members=settings.rollout_max_files),
            builder=make_builder(settings),
            find_installers=make_installers(settings).find,
        )
        async for checked in CheckSoundness(rollouts).check(list(read_tasks(sys.stdin.buffer))):
            agents = [{**asdict(each), "is_as_expected": each.is_as_expected} for each in checked.agents]
            line = {**asdict(checked), "agents": agents, "is_sound": checked.is_sound}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    finally:
        await engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(check()))
