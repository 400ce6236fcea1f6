"""Joins the parts of rollouts."""

import asyncio
import os
import secrets
import uuid
from pathlib import Path

from nats.aio.client import Client

from services.common.clock import Clock
from services.common.sandboxes.ports import SandboxEngine
from services.common.sandboxes.sandbox import TarLimits
from services.worker.execution.execute_sample import ExecuteSample
from services.worker.execution.shard import Shard
from services.worker.rollouts.execute_agent import ExecuteAgent
from services.worker.rollouts.execute_rollout import ExecuteRollout
from services.worker.rollouts.model_port.execute_program import ExecuteProgram
from services.worker.rollouts.model_port.http import served_model
from services.worker.rollouts.nats import NatsBundles, NatsExecution
from services.worker.rollouts.process_rollout import ProcessRollout
from services.worker.rollouts.programs.file_installers import FileInstallers
from services.worker.rollouts.programs.file_packages import FilePackages
from services.worker.rollouts.programs.file_programs import FilePrograms
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders
from services.worker.rollouts.rests.wait_for_provider import RestTimes, WaitForProvider
from services.worker.rollouts.task_files.fetch_files import FetchFiles
from services.worker.rollouts.task_files.file_cache import FileBundleCache
from services.worker.sandboxes.wiring import make_builder
from services.worker.settings import WorkerSettings
from services.worker.verification.execute_pytest import ExecutePytest
from services.worker.verification.file_wheels import FileWheels
from services.worker.verification.pytest_runner import pytest_runner
from services.worker.verification.verify_rollout import VerifyRollout

# A rollout waits for its model most of the time.
ROLLOUTS_PER_CORE = 4


def rollout_slots(settings: WorkerSettings, concurrency: int) -> int:
    """Rollouts that a worker has at a time. Each counts as a request of its pool for as long as it lasts."""
    return min(settings.rollout_slots or ROLLOUTS_PER_CORE * (os.cpu_count() or 1), concurrency)


def make_process_rollout(
    settings: WorkerSettings,
    *,
    connection: Client,
    pool: str,
    slots: int,
    sandboxes: SandboxEngine,
    clock: Clock,
    execute_sample: ExecuteSample,
) -> ProcessRollout:
    """`pool` is its name; the worker has `slots` rollouts at a time."""
    execute_pytest = ExecutePytest(engine=sandboxes, runner=pytest_runner, new_nonce=lambda: uuid.uuid4().hex)
    rollouts = ExecuteRollout(
        verifier=VerifyRollout(
            execute_pytest=execute_pytest,
            wheels=FileWheels(folder=settings.verifier_wheels).packed,
            find_packages=make_packages(settings).find,
        ),
        agents=ExecuteAgent(clock=clock, programs=_make_programs(clock)),
        slots=asyncio.Semaphore(slots),
        clock=clock,
        collected=TarLimits(total_bytes=settings.rollout_max_bytes, members=settings.rollout_max_files),
        find_program=FilePrograms(
            folder=settings.agent_programs,
            unpacked=_beside_bundles(settings, "programs"),
            is_shown=_is_shown(settings),
        ).find,
        builder=make_builder(settings),
        find_installers=make_installers(settings).find,
    )
    cache = FileBundleCache(folder=settings.bundle_cache_dir, max_bytes=settings.bundle_cache_bytes)
    files = FetchFiles(source=NatsBundles(connection=connection, pool=pool), cache=cache)

    def new_execution(shard: Shard, sample: int) -> NatsExecution:
        return NatsExecution(
            connection=connection,
            pool=pool,
            shard=shard,
            sample=sample,
            execution=uuid.uuid4().hex,
        )

    return ProcessRollout(
        execute_sample=execute_sample,
        files=files,
        rollouts=rollouts,
        waits=_make_waits(settings, execute_sample, clock),
        new_execution=new_execution,
        kept_open=asyncio.Semaphore(slots),
    )


def _make_waits(settings: WorkerSettings, execute_sample: ExecuteSample, clock: Clock) -> WaitForProvider:
    times = RestTimes(
        rest_seconds=settings.rollout_rest_seconds, most_seconds=settings.rollout_provider_seconds
    )
    return WaitForProvider(refused_runs=execute_sample.refused_runs, clock=clock, times=times)


def make_packages(settings: WorkerSettings) -> FilePackages:
    return FilePackages(
        wheels=settings.verifier_wheels,
        unpacked=UnpackedFolders(root=_beside_bundles(settings, "packages")),
        is_shown=_is_shown(settings),
    )


def make_installers(settings: WorkerSettings) -> FileInstallers:
    return FileInstallers(
        wheels=settings.verifier_wheels,
        unpacked=UnpackedFolders(root=_beside_bundles(settings, "installers")),
        is_shown=_is_shown(settings),
        runner=pytest_runner,
    )


def _beside_bundles(settings: WorkerSettings, name: str) -> Path:
    return settings.bundle_cache_dir.with_name(f"{settings.bundle_cache_dir.name}-{name}")


def _is_shown(settings: WorkerSettings) -> bool:
    """Whether sandboxes show folders of this machine."""
    return settings.sandbox_engine == "process"


def _make_programs(clock: Clock) -> ExecuteProgram:
    return ExecuteProgram(serve=served_model, new_token=lambda: secrets.token_urlsafe(32), clock=clock)
