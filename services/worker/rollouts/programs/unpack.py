"""Unpacks wheels and archives of a program into one folder: `lib` for Python, `bin` for its commands.

The operator brings them, so they are trusted as what is installed here. pip is not needed. The program keeps
its packages to itself: what it executes in the sandbox does not see them.
"""

import configparser
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, NormalizedName, parse_wheel_filename
from packaging.version import Version

_PYTHON = "#!/usr/bin/env python3\n"
_COMMAND = """import os, site, sys
lib = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib")
sys.path.insert(0, lib)
site.addsitedir(lib)
from {module} import {first}
sys.exit({function}())
"""


class BadProgram(Exception):
    """What is wrong with a wheel or an archive."""


def newest_wheels(paths: Sequence[Path]) -> Iterable[Path]:
    """One of each package. Raises BadProgram."""
    newest: dict[NormalizedName, tuple[Version, Path]] = {}
    for path in paths:
        try:
            name, version, *_ = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise BadProgram(str(error)) from error
        if name not in newest or version > newest[name][0]:
            newest[name] = (version, path)
    return [path for _, path in newest.values()]


def unpack_archive(archive: Path, into: Path) -> None:
    """Raises BadProgram and OSError."""
    try:
        with tarfile.open(archive) as tar:
            if hasattr(tarfile, "tar_filter"):
                tar.extraction_filter = tarfile.tar_filter
            tar.extractall(into)  # noqa: S202  # the operator's
    except tarfile.TarError as error:
        raise BadProgram(f"{archive.name}: {error}") from error


def unpack_wheel(wheel: Path, into: Path) -> None:
    """Raises BadProgram and OSError."""
    try:
        with zipfile.ZipFile(wheel) as files:
            for member in files.infolist():
                if not member.is_dir():
                    _write(files, member, into)
            for name in files.namelist():
                if name.endswith(".dist-info/entry_points.txt"):
                    _write_commands(files.read(name).decode(), into / "bin")
    except (zipfile.BadZipFile, configparser.Error, UnicodeDecodeError) as error:
        raise BadProgram(f"{wheel.name}: {error}") from error


def _write(files: zipfile.ZipFile, member: zipfile.ZipInfo, into: Path) -> None:
    place = _place(PurePosixPath(member.filename))
    if place.is_absolute() or ".." in place.parts:
        raise BadProgram(f"{files.filename}: {member.filename} leaves its folder")
    target, content = into / place, files.read(member)
    target.parent.mkdir(parents=True, exist_ok=True)
    is_script = place.parts[0] == "bin"
    if is_script and content.startswith(b"#!python"):
        content = _PYTHON.encode() + content.partition(b"\n")[2]
    target.write_bytes(content)
    target.chmod(0o755 if is_script or member.external_attr >> 16 & 0o111 else 0o644)


def _place(name: PurePosixPath) -> PurePosixPath:
    """Where a wheel's file belongs (PEP 427)."""
    first, *rest = name.parts
    if not first.endswith(".data") or len(rest) < 2:
        return PurePosixPath("lib", name)
    kind = {"purelib": "lib", "platlib": "lib", "scripts": "bin", "data": "."}.get(rest[0], "other")
    return PurePosixPath(kind, *rest[1:])


def _write_commands(text: str, folder: Path) -> None:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
    parser.read_string(text)
    if not parser.has_section("console_scripts"):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, reference in parser.items("console_scripts"):
        module, _, function = reference.split("[")[0].strip().partition(":")
        script = folder / name
        first = function.partition(".")[0]
        script.write_text(_PYTHON + _COMMAND.format(module=module.strip(), first=first, function=function))
        script.chmod(0o755)
