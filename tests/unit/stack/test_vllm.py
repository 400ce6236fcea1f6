"""When vLLM's environment is made anew, what is installed in it, and what binds its packages."""

import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import pytest

from proctor.stack.errors import EnvironmentBroken
from proctor.stack.vllm.environment import STAMP, ensure_vllm_environment, find_vllm_python, wanted_digest
from proctor.stack.vllm.installation import Installation, installed_pins, merged_pins
from proctor.stack.vllm.worker_source import CHECKOUT, Checkout, InstalledWheel, worker_source

PROJECT = """
[project]
dependencies = ["grpcio"]
[project.optional-dependencies]
service = ["structlog"]
worker = ["orjson"]
gateway = ["fastapi"]
"""
METADATA = "Metadata-Version: 2.4\nName: proctor-eval\nVersion: 7.1\nProvides-Extra: worker\n"
RECORD = """../../bin/proctor,,
proctor/planted.py,sha256=x,1
proctor/__pycache__/planted.cpython-311.pyc,,
proctor_eval-7.1.dist-info/METADATA,,
proctor_eval-7.1.dist-info/WHEEL,,
proctor_eval-7.1.dist-info/INSTALLER,,
proctor_eval-7.1.dist-info/direct_url.json,,
proctor_eval-7.1.dist-info/RECORD,,
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


@pytest.fixture
def installed(tmp_path: Path) -> InstalledWheel:
    """A distribution as pip leaves it, beside a program and what Python compiled."""
    site = tmp_path / "lib" / "python3" / "site-packages"
    contents = {
        "proctor/planted.py": "NAME = 'planted'\n",
        "proctor/__pycache__/planted.cpython-311.pyc": "",
        "proctor_eval-7.1.dist-info/METADATA": METADATA,
        "proctor_eval-7.1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "proctor_eval-7.1.dist-info/INSTALLER": "pip",
        "proctor_eval-7.1.dist-info/direct_url.json": "{}",
        "proctor_eval-7.1.dist-info/RECORD": RECORD,
    }
    for name, text in contents.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return InstalledWheel(tmp_path / "cache", PathDistribution(site / "proctor_eval-7.1.dist-info"))


def test_digest_follows_the_workers_needs_and_nothing_else(repository: Path) -> None:
    before = wanted_digest(Checkout(repository))
    (repository / "pyproject.toml").write_text(PROJECT.replace("fastapi", "starlette"))
    assert wanted_digest(Checkout(repository)) == before
    (repository / "pyproject.toml").write_text(PROJECT.replace("orjson", "msgspec"))
    assert wanted_digest(Checkout(repository)) != before


def test_wheel_of_what_is_installed_holds_its_code_and_can_be_installed(
    installed: InstalledWheel, tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    [requirement] = installed.requirement(tmp_path / "scratch")
    wheel, _, extra = requirement.partition("[")
    assert extra == "worker]"
    with zipfile.ZipFile(wheel) as packed:
        info = "proctor_eval-7.1.dist-info"
        wanted = {"proctor/planted.py", *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD"))}
        assert set(packed.namelist()) == wanted
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps")
    subprocess.run((*pip, "--target", str(tmp_path / "target"), wheel), check=True, timeout=120)
    assert (tmp_path / "target" / "proctor" / "planted.py").read_text() == "NAME = 'planted'\n"


def test_installation_without_a_record_of_its_files_is_refused(tmp_path: Path) -> None:
    info = tmp_path / "proctor_eval-7.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    with pytest.raises(EnvironmentBroken, match="are not recorded"):
        InstalledWheel(tmp_path, PathDistribution(info)).requirement(tmp_path)


def test_worker_of_another_release_is_not_used(
    installed: InstalledWheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.stack.vllm.environment.worker_source", lambda _: installed)
    python = installed.folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert find_vllm_python({}) is None
    (installed.folder / STAMP).write_text(wanted_digest(installed))
    assert find_vllm_python({}) == python


def test_pins_are_those_of_this_environment_without_proctor() -> None:
    pins = installed_pins()
    assert f"grpcio=={distribution('grpcio').version}" in pins
    assert not any(pin.startswith("proctor-eval==") for pin in pins)


def test_vllms_pins_win_and_ours_fill_the_rest() -> None:
    frozen = ["torch==2.13.0", "PyYAML==6.0.3", "-e file:///here"]
    own = ["# tested together", "pyyaml==6.0.1", "nats-py==2.16.0"]
    assert merged_pins(frozen, own) == ["PyYAML==6.0.3", "nats-py==2.16.0", "torch==2.13.0"]


def test_environment_with_todays_stamp_is_left_alone(repository: Path) -> None:
    source = Checkout(repository)
    source.folder.mkdir()
    (source.folder / STAMP).write_text(wanted_digest(source))
    reports: list[str] = []
    assert ensure_vllm_environment(source, reports.append) == source.folder / "bin" / "python"
    assert reports == []


def test_failing_step_shows_the_end_of_its_log(tmp_path: Path) -> None:
    target = Installation(tmp_path / "venv", tmp_path / "install.log")
    with pytest.raises(EnvironmentBroken, match=r"(?s)`sh -c .*failed.*no space left"):
        target.run("sh", "-c", "echo no space left; exit 1")


def test_environment_without_pip_uses_the_one_of_the_new_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Installation(tmp_path, tmp_path / "install.log")
    assert target.pip_command("freeze")[0] == sys.executable
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert target.pip_command("freeze")[0] == str(target.python)


def test_given_python_is_taken_and_a_checkouts_environment_is_beside_it() -> None:
    assert find_vllm_python({"PROCTOR_VLLM_PYTHON": "/x/python"}) == Path("/x/python")
    assert worker_source({}) == Checkout(CHECKOUT)
    assert worker_source({}).folder == CHECKOUT / ".venv-vllm"
