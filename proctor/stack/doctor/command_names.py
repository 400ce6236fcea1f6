"""Checks whether another package has the names that Proctor uses: its command and its import package."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from proctor.distribution import COMMANDS, others_with_our_package
from proctor.stack.doctor.finding import Finding, fine, warning

# What a program of ours names, whichever environment it is of.
_OURS = (b"proctor.launch", b"proctor.cli.__main__")
_HEAD_BYTES = 4096


def examine_command(path: str | None = None) -> Finding:
    """`path` is a PATH; without it, that of this process."""
    first, second = COMMANDS
    found = shutil.which(first, path=path)
    if found is None:
        return fine("command", f"{first} is not on PATH: {Path(sys.executable).with_name(first)}")
    if is_ours(Path(found)):
        return fine("command", found)
    ours = shutil.which(second, path=path) or str(Path(sys.executable).with_name(second))
    return warning("command", f"{found} is of another package", f"call {ours} instead")


def is_ours(program: Path) -> bool:
    """A program that pip writes is a text that imports its function."""
    try:
        with program.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return any(name in head for name in _OURS)


def examine_import_package(others: Sequence[str] | None = None) -> list[Finding]:
    named = others_with_our_package() if others is None else others
    return [
        warning(
            "import package",
            f"{other} installs an import package `proctor` in this environment too",
            f"pip uninstall {other}, or install Proctor in another environment",
        )
        for other in named
    ]
