"""uv installs what pip would, from where pip would take it; pip does what uv cannot be told."""

import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from proctor.stack.vllm import uv
from tests.fakes.stack.package_index import PackageIndex

INFO = "planted-1.dist-info"


@pytest.fixture
def index(tmp_path: Path) -> str:
    """An index of packages that has one."""
    packages = PackageIndex(tmp_path / "simple")
    packages.add("planted", "1")
    return packages.url


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False)
    return folder


def installer(environment: Path) -> str:
    [named] = environment.glob(f"lib/python3.*/site-packages/{INFO}/INSTALLER")
    return named.read_text().strip()


def settings_of_pip(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    (folder / "pip.conf").write_text(text)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(folder / "pip.conf"))
    for variable in ("PIP_FIND_LINKS", "PIP_CERT"):
        monkeypatch.delenv(variable, raising=False)


def test_packages_come_from_the_index_of_pip(
    index: str, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_of_pip(monkeypatch, tmp_path, f"[install]\nindex-url = {index}\n")
    assert uv.main(str(environment), "planted") == 0
    assert installer(environment) == "uv"


def test_packages_come_from_no_index_of_the_project_in_the_current_folder(
    index: str, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[[tool.uv.index]]\nurl = 'http://127.0.0.1:9/simple'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    settings_of_pip(monkeypatch, tmp_path, f"[install]\nindex-url = {index}\n")
    assert uv.main(str(environment), "planted") == 0
    # pip, where uv asked there and failed.
    assert installer(environment) == "uv"


@pytest.mark.parametrize("setting", ["no-binary = other", "no-deps = true"])
def test_pip_does_what_uv_is_not_told(
    setting: str, index: str, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_of_pip(monkeypatch, tmp_path, f"[install]\nindex-url = {index}\n{setting}\n")
    assert uv.main(str(environment), "planted") == 0
    assert installer(environment) == "pip"


def test_pip_tries_again_where_uv_fails(
    index: str, environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_of_pip(monkeypatch, tmp_path, f"[install]\nindex-url = {index}\n")
    monkeypatch.setattr(uv, "find_uv", lambda: "false")
    assert uv.main(str(environment), "planted") == 0
    assert installer(environment) == "pip"


def test_who_has_no_pip_has_settings_of_uv(monkeypatch: pytest.MonkeyPatch, environment: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(environment / "bin" / "python"))
    own = {"UV_DEFAULT_INDEX": "https://packages.example/simple"}
    assert uv.uv_environment(own) == own


@pytest.mark.parametrize(
    ("listed", "settings"),
    [
        ("", {}),
        ("global.index-url='https://a.example'", {"index-url": "https://a.example"}),
        ("global.cert='a'\ninstall.cert='b'", {"cert": "b"}),
        (":env:.cert='c'\ninstall.cert='b'", {"cert": "c"}),
        (r"global.find-links='\na\nb'", {"find-links": "a b"}),
        ("download.no-deps='true'\nlist.format='columns'", {}),
    ],
)
def test_settings_are_those_of_install(listed: str, settings: Mapping[str, str]) -> None:
    assert uv.pip_settings(listed) == settings
