"""Wheels for tests that install packages, from a folder of the operator's: a sandbox has no network."""

import re
import zipfile
from dataclasses import dataclass, field
from email.parser import HeaderParser
from io import BytesIO
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename

from services.common.sandboxes.errors import VerifierFailed
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import pack, read_files
from services.worker.verification.bundles import inflated

SETTING = "PROCTOR_WORKER_VERIFIER_WHEELS"
# What a sandbox takes of them: each verification unpacks its own.
MAX_BYTES = 512 * 1024**2
_TEXTS = (".sh", ".txt", ".toml", ".cfg", ".in")
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
# The programs of the sandbox do these without uv itself.
_NEEDS_UV = re.compile(r"\buv\s+(?:-\S+\s+)*(?:sync|export|tree|build|publish|format)\b")
_UV = canonicalize_name("uv")


@dataclass(slots=True)
class FileWheels:
    """`folder` is read again for each task, so wheels may be added; None means that there is none."""

    folder: Path | None
    _required: dict[Path, frozenset[NormalizedName]] = field(default_factory=dict, init=False)

    def packed(self, tests: bytes) -> bytes:
        """A tar of the wheels that the scripts of these tests name, with all that they require.

        Empty where there is none. Raises VerifierFailed where they are too large, or the folder is not there.
        """
        if self.folder is None:
            return b""
        wheels = self._wheels(self.folder)
        named = _named(tests) & wheels.keys()
        left = sorted(named)
        while left:
            required = self._requires(wheels[left.pop()]) & wheels.keys()
            left += sorted(required - named)
            named |= required
        files = {path.name: path for name in sorted(named) for path in wheels[name]}
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
        return found

    def _requires(self, paths: list[Path]) -> frozenset[NormalizedName]:
        for path in paths:
            if path not in self._required:
                self._required[path] = frozenset(
                    canonicalize_name(each.name) for each in requirements_of(path) if not _is_of_extra(each)
                )
        return frozenset().union(*(self._required[path] for path in paths))


def _named(tests: bytes) -> set[NormalizedName]:
    files = read_files(BytesIO(inflated(tests)), "the tests", TarLimits())
    text = "\n".join(file.content.decode("utf-8", "replace") for file in files if file.name.endswith(_TEXTS))
    named = {canonicalize_name(word) for word in _WORD.findall(text)}
    return named if _NEEDS_UV.search(text) else named - {_UV}


def requirements_of(wheel: Path) -> list[Requirement]:
    """With those of extras."""
    with zipfile.ZipFile(wheel) as files:
        name = next((each for each in files.namelist() if each.endswith(".dist-info/METADATA")), "")
        metadata = HeaderParser().parsestr(files.read(name).decode("utf-8", "replace")) if name else None
    return [Requirement(text) for text in (metadata.get_all("Requires-Dist") or ())] if metadata else []


def _is_of_extra(requirement: Requirement) -> bool:
    """Extras name what they need themselves."""
    return requirement.marker is not None and "extra" in str(requirement.marker)
