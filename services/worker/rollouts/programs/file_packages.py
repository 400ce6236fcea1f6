"""Packages that a Dockerfile installs by pip, from the operator's folder of wheels."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from services.worker.rollouts.programs.processes_python import (
    NoPython,
    SandboxPython,
    sandbox_python,
    write_user_site,
)
from services.worker.rollouts.programs.unpack import BadProgram, unpack_wheel
from services.worker.rollouts.programs.unpacked_folders import UnpackedFolders
from services.worker.verification.file_wheels import SETTING, requirements_of
from services.worker.verification.image_packages import PLACE, ImagePackages, named_package

# Installers and what builds packages: nothing is installed in a sandbox, or by other programs.
_OWN = frozenset(map(canonicalize_name, ("pip", "setuptools", "wheel", "uv", "pipx", "virtualenv", "build")))
# Changes with how wheels are unpacked.
_FORM = "2"
_SHOWN = 8

_Wheels = dict[NormalizedName, list[tuple[Version, Path]]]


@dataclass(frozen=True, slots=True)
class FilePackages:
    """`wheels` is read again for each task, so wheels may be added; None means that there is none.

    Each wheel is unpacked into `unpacked` once, and each set of them is a folder of links to its files, with
    a program `python` where the machine has it as `python3` only. `is_shown`: sandboxes can show a folder of
    this machine, and have its Python.
    """

    wheels: Path | None
    unpacked: UnpackedFolders
    is_shown: bool
    python: Callable[[], SandboxPython] = sandbox_python

    def find(self, packages: Sequence[str]) -> ImagePackages:
        """Blocks. What cannot be had is missing."""
        if not self.is_shown:
            return _nothing(packages, "only sandboxes of processes have them")
        try:
            python = self.python()
            choice = _Choice(python, _wheels_of(self.wheels, python) if self.wheels else {})
            choice.choose(packages)
            is_needed = choice.chosen or not python.is_named_python
            folder = str(self._unpacked(choice, python)) if is_needed else ""
        except (NoPython, BadProgram, OSError) as problem:
            return _nothing(packages, str(problem))
        return ImagePackages(folder, tuple(choice.notes()), tuple(map(named_package, choice.missing)))

    def _unpacked(self, choice: "_Choice", python: SandboxPython) -> Path:
        """Raises BadProgram and OSError."""
        parts = [self._unpacked_wheel(wheel, python) for wheel in sorted(choice.chosen.values())]
        digest = hashlib.sha256("\n".join([_FORM, *(part.name for part in parts)]).encode()).hexdigest()[:32]
        return self.unpacked.made(f"set-{digest}", partial(_linked, parts, python))

    def _unpacked_wheel(self, wheel: Path, python: SandboxPython) -> Path:
        status = wheel.stat()
        facts = [_FORM, python.program, wheel.name, str(status.st_size), str(status.st_mtime_ns)]
        digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]

        def unpack(into: Path) -> None:
            unpack_wheel(wheel, into)
            python.compile(into / "lib", f"{PLACE}/lib")

        return self.unpacked.made(f"wheel-{digest}", unpack)


@dataclass(slots=True)
class _Choice:
    """The wheels of some packages and of all that they require; what is installed needs none."""

    python: SandboxPython
    wheels: _Wheels
    chosen: dict[NormalizedName, Path] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    def choose(self, packages: Sequence[str]) -> None:
        installed = {canonicalize_name(name): version for name, version in self.python.installed.items()}
        left, seen = [*packages], set()
        while left:
            text = left.pop(0)
            if text in seen:
                continue
            seen.add(text)
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                self.missing[text] = None
                continue
            name = canonicalize_name(requirement.name)
            if name not in _OWN and self._applies(requirement, ""):
                left += self._required(requirement, name, installed.get(name, ""))

    def notes(self) -> Iterator[str]:
        if self.others:
            yield f"packages of RUN in other versions: {_some(self.others)}"
        if self.missing:
            absent = _some([*self.missing])
            yield f"packages of RUN that are not there ({SETTING} names no wheel of them): {absent}"

    def _required(self, requirement: Requirement, name: NormalizedName, installed: str) -> list[str]:
        if installed and _fits(requirement, installed) and name not in self.chosen:
            return []
        if name not in self.chosen:
            wheels = self.wheels.get(name, [])
            fitting = [each for each in wheels if _fits(requirement, str(each[0]))] or wheels
            if not fitting:
                if installed:
                    self.others.append(f"{name} {installed} for {requirement}")
                else:
                    self.missing[str(requirement)] = None
                return []
            version, self.chosen[name] = max(fitting)
            if not _fits(requirement, str(version)):
                self.others.append(f"{name} {version} for {requirement}")
        extras = requirement.extras or {""}
        return [
            _without_marker(inner)
            for inner in requirements_of(self.chosen[name])
            if any(self._applies(inner, extra) for extra in extras)
        ]

    def _applies(self, requirement: Requirement, extra: str) -> bool:
        return requirement.marker is None or requirement.marker.evaluate(
            {**self.python.markers, "extra": extra}
        )


def _nothing(packages: Sequence[str], problem: str) -> ImagePackages:
    if not packages:
        return ImagePackages()
    note = f"packages of RUN that are not there ({problem}): {_some(packages)}"
    return ImagePackages(notes=(note,), missing=tuple(map(named_package, packages)))


def _wheels_of(folder: Path, python: SandboxPython) -> _Wheels:
    """Those that this Python takes. Raises NoPython where the folder is not there."""
    if not folder.is_dir():
        raise NoPython(f"there is no folder {folder}, which {SETTING} names")
    found: _Wheels = {}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        if not python.tags.isdisjoint(map(str, tags)):
            found.setdefault(name, []).append((version, path))
    return found


def _linked(parts: Sequence[Path], python: SandboxPython, into: Path) -> None:
    """Files of several wheels that have one path, such as of a namespace, are equal."""
    for part in parts:
        shutil.copytree(part, into, copy_function=_link, dirs_exist_ok=True)
    write_user_site(into / "user" / python.user_site, (f"{PLACE}/lib",))
    if not python.is_named_python:
        (into / "bin").mkdir(exist_ok=True)
        (into / "bin" / "python").symlink_to(python.program)


def _link(source: str, target: str) -> None:
    if not Path(target).exists():
        os.link(source, target)


def _fits(requirement: Requirement, version: str) -> bool:
    try:
        return requirement.specifier.contains(version, prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return False


def _without_marker(requirement: Requirement) -> str:
    requirement.marker = None
    return str(requirement)


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
