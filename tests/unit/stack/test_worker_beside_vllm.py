"""The worker beside vLLM: bound to what vLLM brought, and to what runs here where both agree."""

import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from proctor.stack.errors import EnvironmentBroken
from proctor.stack.vllm import installation
from proctor.stack.vllm.installation import Installation
from proctor.stack.vllm.worker_source import Checkout
from tests.fakes.stack.package_index import PackageIndex


class Worker(Checkout):
    """Needs two packages, of which the second needs the first."""

    def requirement(self, scratch: Path) -> Sequence[str]:  # noqa: ARG002  # the port's
        return ("base", "addon")


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Where vLLM has brought `base` 1; each release of `addon` needs another one of it."""
    index = PackageIndex(tmp_path / "simple")
    for version in ("1", "2"):
        index.add("base", version)
        index.add("addon", version, [f"base=={version}"])
    for variable in ("PIP_FIND_LINKS", "PIP_CERT"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    venv.create(tmp_path / "environment", with_pip=False)
    made = Installation(tmp_path / "environment", tmp_path / "log")
    made.install("base==1")
    return made


def installed(target: Installation) -> set[str]:
    frozen = target.pip_command("freeze")
    return set(subprocess.run(frozen, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(("here", "addon"), [("1", "1"), ("2", "1")], ids=["agrees", "needs another base"])
def test_a_later_package_here_gives_way_to_what_vllm_brought(
    here: str, addon: str, target: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "installed_pins", lambda: ["base==2", f"addon=={here}"])
    installation._install_worker(target, Worker(tmp_path))
    assert installed(target) >= {"base==1", f"addon=={addon}"}


def test_what_cannot_be_had_beside_vllm_is_said(
    target: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(Worker):
        def requirement(self, scratch: Path) -> Sequence[str]:  # noqa: ARG002  # the port's
            return ("addon==2",)

    monkeypatch.setattr(installation, "installed_pins", list)
    with pytest.raises(EnvironmentBroken, match="base==1"):
        installation._install_worker(target, Other(tmp_path))
