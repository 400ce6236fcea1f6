"""Joins the parts of rollouts."""

import asyncio
import os
import uuid

from services.common.clock import Clock
from services.worker.execution.execute_sample import ExecuteSample
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.rollouts.process_rollout import ProcessRollout
from services.worker.sandboxes.ports import SandboxEngine
from services.worker.settings import WorkerSettings
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout
from services.worker.verification.verify_solution import VerifySolution

# A rollout waits for its model most of the time.
_PER_CORE = 4


def make_process_rollout(
    settings: WorkerSettings, sandboxes: SandboxEngine, clock: Clock, execute_sample: ExecuteSample
) -> ProcessRollout:
    slots = settings.rollout_slots or _PER_CORE * (os.cpu_count() or 1)
    solutions = VerifySolution(engine=sandboxes, runner=pytest_runner, new_word=lambda: uuid.uuid4().hex)
    rollouts = ExecuteRollout(
        verifier=VerifyRollout(solutions=solutions),
        agents=ExecuteAgent(clock=clock),
        slots=asyncio.Semaphore(slots),
        clock=clock,
    )
    return ProcessRollout(execute_sample=execute_sample, rollouts=rollouts)
