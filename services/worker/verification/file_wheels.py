"""Wheels for tests that install packages, from a folder of the operator's: a sandbox has no network."""

import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.parser import HeaderParser
from io import BytesIO
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from services.common.sandboxes.errors import VerifierFailed
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import pack, read_files
from services.worker.verification.bundles import inflated

SETTING = "PROCTOR_WORKER_VERIFIER_WHEELS"
# What a sandbox takes of them: each verification unpacks its own.
MAX_BYTES = 512 * 1024**2
_TEXTS = (".sh", ".txt", ".toml", ".cfg", ".in")
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_CLAUSE = r"(?:[=<>!~]=|[<>])\s*\d[\w.*+]*"
_PIN = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]\s]*\])?\s*({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)")
# A package, and which versions of it.
_Wanted = tuple[NormalizedName, SpecifierSet]
# The programs of the sandbox do these without uv itself.
_NEEDS_UV = re.compile(r"\buv\s+(?:-\S+\s+)*(?:sync|export|tree|build|publish|format)\b")
_UV = canonicalize_name("uv")


@dataclass(slots=True)
class FileWheels:
    """`folder` is read again for each task, so wheels may be added; None means that there is none."""

    folder: Path | None
    _required: dict[Path, Sequence[_Wanted]] = field(default_factory=dict, init=False)

    def packed(self, tests: bytes) -> bytes:
        """A tar of the wheels that the scripts of these tests name, with all that they require.

        The newest of each that is as it is wanted. Empty where there is none. Raises VerifierFailed where
        they are too large, or the folder is not there.
        """
        if self.folder is None:
            return b""
        wheels = self._wheels(self.folder)
        left = list(_named(tests, wheels.keys()))
        files: dict[str, Path] = {}
        while left:
            name, wanted = left.pop()
            # Where none is as it is wanted, the installer says so, or takes one of the same major version.
            fitting = [path for path in wheels[name] if wanted.contains(_version_of(path), prereleases=True)]
            near = (path for path in wheels[name] if _version_of(path).major in _pinned_majors(wanted))
            newest = _version_of((fitting or [*near] or wheels[name])[0])
            for path in wheels[name]:
                if _version_of(path) == newest and path.name not in files:
                    files[path.name] = path
                    left += [each for each in self._requires(path) if each[0] in wheels]
        if (size := sum(path.stat().st_size for path in files.values())) > MAX_BYTES:
            raise VerifierFailed(
                problem=f"their wheels have {size:,} bytes, and a sandbox takes {MAX_BYTES:,}."
            )
        return pack({name: path.read_bytes() for name, path in files.items()}) if files else b""

    def _wheels(self, folder: Path) -> dict[NormalizedName, list[Path]]:
        if not folder.is_dir():
            raise VerifierFailed(problem=f"there is no folder {folder}, which {SETTING} names.")
        found: dict[NormalizedName, list[Path]] = {}
        for path in sorted(folder.glob("*.whl")):
            try:
                found.setdefault(parse_wheel_filename(path.name)[0], []).append(path)
            except InvalidWheelFilename:
                continue
        return {name: sorted(paths, key=_version_of, reverse=True) for name, paths in found.items()}

    def _requires(self, path: Path) -> Sequence[_Wanted]:
        if path not in self._required:
            self._required[path] = tuple(
                (canonicalize_name(each.name), each.specifier)
                for each in requirements_of(path)
                if not _is_of_extra(each)
            )
        return self._required[path]


def _version_of(wheel: Path) -> Version:
    return parse_wheel_filename(wheel.name)[1]


def _pinned_majors(wanted: SpecifierSet) -> set[int]:
    pins = (each.version for each in wanted if each.operator in ("==", "===", "~="))
    return {int(found[0]) for pin in pins if (found := re.match(r"\d+", pin))}


def _named(tests: bytes, there: Collection[NormalizedName]) -> Iterator[_Wanted]:
    """Packages by their names, in each version that is written behind one."""
    files = read_files(BytesIO(inflated(tests)), "the tests", TarLimits())
    text = "\n".join(file.content.decode("utf-8", "replace") for file in files if file.name.endswith(_TEXTS))
    named = {canonicalize_name(word) for word in _WORD.findall(text)} & {*there}
    pinned: dict[NormalizedName, list[SpecifierSet]] = {}
    for pin, clauses in _PIN.findall(text):
        with suppress(InvalidSpecifier):
            pinned.setdefault(canonicalize_name(pin), []).append(SpecifierSet(clauses))
    for name in sorted(named if _NEEDS_UV.search(text) else named - {_UV}):
        yield from ((name, wanted) for wanted in pinned.get(name) or [SpecifierSet()])


def requirements_of(wheel: Path) -> list[Requirement]:
    """With those of extras."""
    with zipfile.ZipFile(wheel) as files:
        name = next((each for each in files.namelist() if each.endswith(".dist-info/METADATA")), "")
        metadata = HeaderParser().parsestr(files.read(name).decode("utf-8", "replace")) if name else None
    return [Requirement(text) for text in (metadata.get_all("Requires-Dist") or ())] if metadata else []


def _is_of_extra(requirement: Requirement) -> bool:
    """Extras name what they need themselves."""
    return requirement.marker is not None and "extra" in str(requirement.marker)
