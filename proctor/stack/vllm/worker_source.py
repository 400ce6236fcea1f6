"""The Proctor that is installed beside vLLM: the checkout that runs, or the files of the installed wheel."""

import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackagePath, distribution
from pathlib import Path
from typing import Protocol

from proctor.distribution import NAME
from proctor.stack.defaults import default_cache_dir
from proctor.stack.errors import EnvironmentBroken

CHECKOUT = Path(__file__).resolve().parents[3]
WORKER_EXTRAS = ("service", "worker")
# Facts about one installation, which no wheel has.
_OF_INSTALLATION = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json"})


class WorkerSource(Protocol):
    """`folder` is vLLM's environment, `records` has the lock and the log of its installation."""

    @property
    def folder(self) -> Path: ...

    @property
    def records(self) -> Path: ...

    @property
    def follows_code(self) -> bool:
        """Whether the worker in the environment is always the code that runs here."""
        ...

    def identity(self) -> Sequence[str]:
        """Texts that change when the worker has to be installed anew."""
        ...

    def requirement(self, scratch: Path) -> Sequence[str]:
        """Arguments of `pip install`; files that they need are written to `scratch`."""
        ...


@dataclass(frozen=True, slots=True)
class Checkout:
    """Sources in a folder, which are installed in place."""

    repository: Path = CHECKOUT
    follows_code: bool = True

    @property
    def folder(self) -> Path:
        return self.repository / ".venv-vllm"

    @property
    def records(self) -> Path:
        return self.repository / ".proctor"

    def identity(self) -> Sequence[str]:
        """With the path: the environment names it, so that neither can be moved."""
        project = tomllib.loads((self.repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = project["optional-dependencies"]
        return (
            str(self.repository),
            *project["dependencies"],
            *(line for extra in WORKER_EXTRAS for line in extras[extra]),
        )

    def requirement(self, scratch: Path) -> Sequence[str]:  # noqa: ARG002  # the port's
        return ("-e", f"{self.repository}[worker]")


@dataclass(frozen=True, slots=True)
class InstalledWheel:
    """An installed distribution. Its files are packed again, so that both environments run the same code."""

    cache: Path
    installed: Distribution = field(default_factory=lambda: distribution(NAME))
    follows_code: bool = False

    @property
    def folder(self) -> Path:
        return self.cache / "vllm"

    @property
    def records(self) -> Path:
        return self.cache

    def identity(self) -> Sequence[str]:
        return (str(self.folder), self.installed.read_text("RECORD") or "")

    def requirement(self, scratch: Path) -> Sequence[str]:
        return (f"{self._wheel(scratch)}[worker]",)

    def _wheel(self, scratch: Path) -> Path:
        files = [file for file in self.installed.files or () if _is_of_wheel(file)]
        info = next((file.parent for file in files if file.name == "METADATA"), None)
        if info is None:
            raise EnvironmentBroken(
                problem="The installed files of Proctor are not recorded: install it by pip, pipx or uv."
            )
        wheel = scratch / f"{NAME.replace('-', '_')}-{self.installed.version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                packed.write(str(file.locate()), file.as_posix())
            packed.writestr(f"{info.as_posix()}/RECORD", "".join(f"{file.as_posix()},,\n" for file in files))
        return wheel


def _is_of_wheel(file: PackagePath) -> bool:
    """Neither a program, which lies outside of the packages, nor what Python compiled."""
    is_ours = not {"..", "__pycache__"}.intersection(file.parts)
    return is_ours and file.name not in _OF_INSTALLATION and not file.is_absolute()


def worker_source(environ: Mapping[str, str]) -> WorkerSource:
    if (CHECKOUT / "pyproject.toml").is_file():
        return Checkout()
    return InstalledWheel(default_cache_dir(environ))
