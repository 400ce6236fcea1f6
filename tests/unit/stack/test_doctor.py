"""Findings of `proctor doctor` on machines that lack something."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.stack.doctor import machine
from proctor.stack.doctor import machine as installed_parts
from proctor.stack.doctor import models as local_models
from proctor.stack.doctor.examine import examine, examine_stack
from proctor.stack.doctor.finding import Finding, Severity
from proctor.stack.doctor.models import examine_providers
from proctor.stack.state import ChildState, StackLock, StackState, write_stack_state

PLANTED = "sk-planted-secret"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PROCTOR_STATE_DIR": str(tmp_path / "state"), "PROCTOR_CACHE_DIR": str(tmp_path / "cache")}


def vllm_environment(folder: Path, *versions: str) -> dict[str, str]:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for version in versions:
        (folder / "lib" / "python3.11" / "site-packages" / f"vllm-{version}.dist-info").mkdir(parents=True)
    return {"PROCTOR_VLLM_PYTHON": str(python)}


def with_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H100, 81559 MiB'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_old_python_is_reported() -> None:
    assert installed_parts.examine_python((3, 10, 4)).severity is Severity.MISSING
    assert installed_parts.examine_python().severity is Severity.OK


def test_packages_are_those_that_the_distribution_names() -> None:
    finding = installed_parts.examine_packages()
    assert finding.severity is Severity.OK, finding.message


@pytest.mark.parametrize("look", [installed_parts.examine_postgres, installed_parts.examine_nats])
def test_programs_are_asked_for_their_version(look: object) -> None:
    assert callable(look)
    finding: Finding = look()
    assert finding.severity is Severity.OK
    assert any(letter.isdigit() for letter in finding.message)


def test_memory_is_read_where_the_system_reports_it(tmp_path: Path) -> None:
    reported = tmp_path / "meminfo"
    assert machine.examine_memory(reported).severity is Severity.OK
    reported.write_text("MemTotal: 9000000 kB\nMemAvailable: 1048576 kB\n")
    finding = machine.examine_memory(reported)
    assert (finding.severity, finding.message) == (Severity.WARNING, "1.0 GiB free")


def test_data_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environ = {"PROCTOR_STATE_DIR": str(tmp_path / "file" / "state")}
    assert machine.examine_data_folder(environ, tmp_path).severity is Severity.MISSING


def test_environment_without_vllm_is_a_warning_that_says_how_to_make_it(tmp_path: Path) -> None:
    finding = local_models.examine_vllm(vllm_environment(tmp_path / "none"))
    assert finding.severity is Severity.WARNING
    assert "`proctor vllm install` makes it" in finding.advice
    absent = local_models.examine_vllm({"PROCTOR_VLLM_PYTHON": "/nowhere/python"})
    assert "/nowhere/python does not exist" in absent.message


def test_vllm_is_reported_with_the_build_it_has(tmp_path: Path) -> None:
    finding = local_models.examine_vllm(vllm_environment(tmp_path / "v", "0.32.0", "0.32.0+cpu"))
    assert finding.message.startswith("vLLM 0.32.0+cpu")


def test_build_that_does_not_fit_the_machine_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for_cpu = vllm_environment(tmp_path / "cpu", "0.32.0+cpu")
    for_gpu = vllm_environment(tmp_path / "gpu", "0.32.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert local_models.examine_gpu(for_cpu).severity is Severity.OK
    assert local_models.examine_gpu(for_gpu).severity is Severity.WARNING
    monkeypatch.setenv("PATH", os.defpath)
    with_gpu(tmp_path / "bin", monkeypatch)
    assert "NVIDIA H100, 81559 MiB, but" in local_models.examine_gpu(for_cpu).message
    assert local_models.examine_gpu(for_gpu).severity is Severity.OK


async def by_name(environ: Mapping[str, str]) -> dict[str, Finding]:
    return {finding.name: finding for finding in await examine_providers(environ)}


async def test_providers_are_reported_by_the_names_of_their_keys_and_whether_they_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        here, away = server.getsockname()[1], silent.getsockname()[1]
        found = await by_name(
            {
                "OPENAI_BASE_URL": f"http://127.0.0.1:{here}/v1",
                "OPENAI_API_KEY": PLANTED,
                "OLLAMA_BASE_URL": f"http://127.0.0.1:{away}",
                "REMOTE_API_KEY": PLANTED,
                "GROK_BASE_URL": "http://[no-address",
            }
        )
    assert found["provider openai"].severity is Severity.OK
    assert found["provider openai"].message.endswith("answers; key in OPENAI_API_KEY")
    assert "no program listens there; no key" in found["provider ollama"].message
    assert found["provider remote"].advice == "set REMOTE_BASE_URL to its server"
    assert found["provider grok"].severity is Severity.WARNING
    assert "gemini (GOOGLE_API_KEY)" in found["other providers"].message
    assert PLANTED not in str(found)


async def test_port_that_another_program_has_is_reported_with_the_setting(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        taken = {"PROCTOR_GATEWAY_HTTP_ADDRESS": address, "PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:0"}
        _, ports = await examine_stack(environ | taken, Path.cwd())
    assert ports.severity is Severity.MISSING
    assert "PROCTOR_GATEWAY_HTTP_ADDRESS" in ports.advice


async def test_stack_that_runs_and_does_not_serve_is_reported(environ: dict[str, str]) -> None:
    state_dir = Path(environ["PROCTOR_STATE_DIR"])
    lock = StackLock.take(state_dir)
    try:
        children = {
            "gateway": ChildState(1, "ready", 0, "/g.log"),
            "nats": ChildState(2, "waiting", 3, "/n.log"),
        }
        state = StackState(1, "running", "127.0.0.1:1", "127.0.0.1:1", "", "", children=children)
        write_stack_state(state_dir, state)
        (ailing,) = await examine_stack(environ, Path.cwd())
        write_stack_state(state_dir, replace(state, children={}))
        (silent,) = await examine_stack(environ, Path.cwd())
    finally:
        lock.release()
    assert ailing.severity is silent.severity is Severity.WARNING
    assert "not ready: nats" in ailing.message
    assert ailing.advice.startswith("see /n.log,")
    assert "does not answer as ready" in silent.message


async def test_machine_with_nothing_that_serves_a_model_lacks_one(environ: dict[str, str]) -> None:
    found = await examine(environ | {"PROCTOR_VLLM_PYTHON": "/nowhere/python"}, Path.cwd())
    assert found[-1].name == "models"
    assert found[-1].severity is Severity.MISSING
    assert all(finding.advice for finding in found if finding.severity is not Severity.OK)


@pytest.mark.parametrize(
    ("isolation", "severity", "message"),
    [
        ({"problem": "no user namespaces."}, Severity.WARNING, "cannot be run here: no user namespaces."),
        ({"unlimited": ["CPU time"]}, Severity.WARNING, "not limited: CPU time (by watch)"),
        ({}, Severity.OK, "process isolates and limits (by watch, /usr/bin/bwrap)"),
    ],
)
def test_what_a_sandbox_cannot_hold_is_reported(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    isolation: dict[str, object],
    severity: Severity,
    message: str,
) -> None:
    facts = {"limits": "by watch", "program": "/usr/bin/bwrap"}
    own = {"engine": "process", "is_selected": True, "problem": "", "unlimited": [], "facts": facts}
    other = {**own, "engine": "docker", "is_selected": False, "problem": "no engine answers."}
    said = json.dumps([other, own | isolation])
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    finding, another = machine.examine_sandboxes()
    assert finding.severity is severity
    assert message in finding.message
    assert (another.name, another.severity) == ("sandbox docker", Severity.OK)
    assert another.message == "not selected (PROCTOR_WORKER_SANDBOX_ENGINE=docker): no engine answers."


def test_this_machine_is_asked_by_the_worker_s_own_program() -> None:
    selected, *others = machine.examine_sandboxes()
    assert "cannot be examined" not in selected.message
    assert [each.name for each in others] == ["sandbox docker", "sandbox kubernetes", "sandbox modal"]


@pytest.mark.parametrize(
    ("free_gib", "severity", "said"),
    [
        (0.6, Severity.MISSING, "need 0.6 GiB"),
        (0.7, Severity.WARNING, "made smaller"),
        (2.1, Severity.WARNING, "made smaller"),
        (2.3, Severity.WARNING, "2.3 GiB free"),
        (5.1, Severity.OK, "5.1 GiB free"),
    ],
)
def test_the_disk_is_measured_by_the_sizes_of_streams(
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    free_gib: float,
    severity: Severity,
    said: str,
) -> None:
    usage = shutil.disk_usage("/")._replace(free=int(free_gib * 1024**3))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    finding = machine.examine_disk(environ, Path.cwd())
    assert finding.severity is severity
    assert said in finding.message
    assert ("made smaller" in finding.message) == (said == "made smaller")
    # A scheduler with small streams needs less.
    small = {"PROCTOR_SCHEDULER_OUTCOME_STREAM_BYTES": str(2**20), "PROCTOR_SCHEDULER_WORK_STREAM_BYTES": "1"}
    if severity is Severity.WARNING:
        assert "made smaller" not in machine.examine_disk({**environ, **small}, Path.cwd()).message
