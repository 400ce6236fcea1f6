"""A task cannot have more of the worker's machine than its operator gives to one sandbox."""

import math
import os
from dataclasses import replace
from typing import cast

import pytest

from services.common.sandboxes.errors import SandboxError
from services.common.sandboxes.ports import Sandbox, SandboxEngine
from services.common.sandboxes.sandbox import SandboxLimits, SandboxSpec
from services.common.sandboxes.tar_files import pack
from services.worker.sandboxes.allowed_images import is_allowed, read_allowed
from services.worker.sandboxes.bounded_engine import BoundedEngine
from services.worker.sandboxes.wiring import make_sandboxes
from services.worker.settings import WorkerSettings
from services.worker.verification.check_code import SPEC
from services.worker.verification.execute_pytest import LIMITS, ExecutePytest
from services.worker.verification.pytest_request import PytestRequest

GIB = 1024**3


class Opened:
    """An engine that opens anything."""

    def __init__(self) -> None:
        self.specs: list[SandboxSpec] = []

    async def open(self, spec: SandboxSpec) -> Sandbox:
        self.specs.append(spec)
        return cast("Sandbox", object())


async def test_sandbox_above_a_bound_is_refused_with_the_setting_and_none_is_opened() -> None:
    inner = Opened()
    engine = BoundedEngine(
        engine=cast("SandboxEngine", inner), images=(), max_memory_bytes=2 * GIB, max_cpus=2
    )
    with pytest.raises(
        SandboxError, match=r"asks for 1,048,576 MiB of memory, .* 2,048 MiB .*SANDBOX_MAX_MEMORY_BYTES"
    ):
        await engine.open(SandboxSpec(limits=SandboxLimits(memory_bytes=1024 * GIB)))
    with pytest.raises(SandboxError) as refused:
        await engine.open(SandboxSpec(limits=SandboxLimits(cpus=2.5)))
    assert refused.value.facts == {
        "wanted": "2.5 CPUs",
        "maximum": "2",
        "setting": "PROCTOR_WORKER_SANDBOX_MAX_CPUS",
    }
    assert not inner.specs
    await engine.open(SandboxSpec(limits=SandboxLimits(cpus=2, memory_bytes=2 * GIB)))
    assert len(inner.specs) == 1


@pytest.mark.parametrize("limits", [LIMITS, SPEC.limits])
async def test_sandbox_of_no_task_has_the_bound_as_its_limit_where_it_is_smaller(
    limits: SandboxLimits,
) -> None:
    inner = Opened()
    engine = BoundedEngine(
        engine=cast("SandboxEngine", inner), images=(), max_memory_bytes=GIB // 4, max_cpus=0.5
    )
    await engine.open(SandboxSpec(limits=limits, can_lower_limits=True))
    [opened] = inner.specs
    assert opened.limits == replace(limits, cpus=0.5, memory_bytes=GIB // 4)
    assert SPEC.can_lower_limits


async def test_an_image_that_the_operator_does_not_allow_is_refused_and_none_is_opened() -> None:
    inner = Opened()
    engine = BoundedEngine(
        engine=cast("SandboxEngine", inner),
        images=("registry.example.org/tasks/",),
        max_memory_bytes=GIB,
        max_cpus=2,
    )
    with pytest.raises(SandboxError, match=r"image internal:5000/secret .*PROCTOR_WORKER_SANDBOX_IMAGES"):
        await engine.open(SandboxSpec(image="internal:5000/secret"))
    assert not inner.specs
    for image in ("", "registry.example.org/tasks/a:1"):
        await engine.open(SandboxSpec(image=image))
    assert len(inner.specs) == 2


@pytest.mark.parametrize(
    ("image", "allowed", "is_allowed_by"),
    [
        ("python:3.13", "python", True),
        ("docker.io/library/python@sha256:0a", "python", True),
        ("python", "docker.io/library/python", True),
        ("pythonic:1", "python", False),
        ("someone/python", "python", False),
        ("someone/python", "someone/", True),
        ("registry.example.org/tasks-of-others/a", "registry.example.org/tasks", False),
        ("registry.example.org/tasks/a", "registry.example.org/tasks", True),
        ("registry.example.org.evil.net/a", "registry.example.org", False),
        ("registry.example.org/a", "registry.example.org/", True),
        ("localhost:5000/a", "localhost:5000/a:2", False),
        ("localhost:5000/a:2", "other, localhost:5000/a:2", True),
        ("anything", "*", True),
        ("anything", "", False),
    ],
)
def test_a_prefix_ends_at_a_part_of_the_name(image: str, allowed: str, *, is_allowed_by: bool) -> None:
    assert is_allowed(image, read_allowed(allowed)) == is_allowed_by


def test_the_image_of_the_operator_is_allowed_in_every_engine_of_containers() -> None:
    for name in ("docker", "kubernetes", "modal"):
        engine = make_sandboxes(WorkerSettings(sandbox_image="a/b", sandbox_images="c/"), name)
        assert isinstance(engine, BoundedEngine)
        assert engine.images == ("a/b", "c/")


async def test_tests_of_a_rubric_run_on_a_machine_with_one_core() -> None:
    class Refused(Exception):
        pass

    class Refusing(Opened):
        async def open(self, spec: SandboxSpec) -> Sandbox:
            await super().open(spec)
            raise Refused

    inner = Refusing()
    engine = BoundedEngine(
        engine=cast("SandboxEngine", inner), images=(), max_memory_bytes=16 * GIB, max_cpus=1
    )
    request = PytestRequest(files=pack({}), folder="/app", tests=pack({}), tests_folder="/tests")
    with pytest.raises(Refused):
        await ExecutePytest(engine, lambda: b"", lambda: "nonce").execute(request)
    assert [spec.limits.cpus for spec in inner.specs] == [1]


@pytest.mark.parametrize(
    ("name", "max_cpus"),
    [("process", os.cpu_count()), ("docker", os.cpu_count()), ("kubernetes", math.inf), ("modal", math.inf)],
)
def test_every_engine_of_a_worker_is_bounded(name: str, max_cpus: float) -> None:
    """Pods and sandboxes of Modal run elsewhere: the cores of the worker's machine do not bound them."""
    engine = make_sandboxes(WorkerSettings(), name)
    assert isinstance(engine, BoundedEngine)
    assert (engine.max_memory_bytes, engine.max_cpus) == (16 * GIB, max_cpus)
    chosen = make_sandboxes(WorkerSettings(sandbox_max_cpus=3), name)
    assert isinstance(chosen, BoundedEngine)
    assert chosen.max_cpus == 3
