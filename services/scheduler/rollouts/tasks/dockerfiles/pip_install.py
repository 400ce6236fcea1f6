"""Reads the packages of a `pip install` of a RUN."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import join, normpath

_PIP = re.compile(r"(?:\S*/)?pip3?(?:\.\d+)?")
_UV = re.compile(r"(?:\S*/)?uv")
_PYTHON = re.compile(r"(?:\S*/)?python[\d.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Where the command ends: its output is thrown away, or another is executed where it fails.
_END = re.compile(r"\|\|?|&|\d?>.*")
_FILES = ("-r", "--requirement", "--requirements")
# Options that have a value in the next word. Those of other places to install to are not among them.
_WITH_VALUE = frozenset(
    (
        *("-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--index"),
        *("--default-index", "--only-binary", "--no-binary", "--progress-bar", "--timeout", "--retries"),
        *("--trusted-host", "--cache-dir", "--log", "--proxy", "--upgrade-strategy", "-p", "--python"),
        *("--default-timeout", "--index-strategy", "--root-user-action", "--use-feature"),
    )
)
_ELSEWHERE = ("-t", "--target", "--prefix", "--root", "-e", "--editable", "--user-base")
# A project of the folder, an archive, or an address.
_NO_NAME = re.compile(r"^[./~]|/|\.(?:whl|zip|tar\.gz)$|^git\+")


@dataclass(frozen=True, slots=True)
class PipInstall:
    """Packages as they are asked for, and absolute paths of files with more of them."""

    text: str
    packages: Sequence[str] = ()
    files: Sequence[str] = ()


def read_pip_install(text: str, cwd: str) -> PipInstall | None:
    """None for another command, and for one that installs what is no package of an index."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    rest = _after_install(words)
    if rest is None:
        return None
    install = _read_words(text, rest, cwd)
    return None if install is None or any(map(_NO_NAME.search, install.packages)) else install


def _read_words(text: str, words: list[str], cwd: str) -> PipInstall | None:
    packages: list[str] = []
    files: list[str] = []
    while words and not _END.fullmatch(words[0]):
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if option in _FILES or option in _WITH_VALUE:
            value = value if equals else words.pop(0) if words else ""
            files += [normpath(join(cwd, value))] if option in _FILES else []
        elif option in _ELSEWHERE:
            return None
        elif word.startswith("-r"):
            files.append(normpath(join(cwd, word[2:])))
        elif not word.startswith("-"):
            packages.append(word)
    return PipInstall(text, packages, files) if packages or files else None


def listed_packages(content: bytes) -> Iterator[str]:
    """Those of a file of requirements, which may have options, hashes and comments."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\\\n", " ")
    for line in text.splitlines():
        package = re.split(r"(?:^|\s)#|\s--", line)[0].strip()
        if package and not package.startswith("-") and not _NO_NAME.search(package.partition(";")[0]):
            yield package


def _after_install(words: list[str]) -> list[str] | None:
    left = [*words]
    while left and (_ASSIGNMENT.match(left[0]) or left[0] == "sudo"):
        left.pop(0)
    if left and _UV.fullmatch(left[0]):
        left = left[1:]
        if left[:1] == ["add"]:
            return left[1:]
    elif left and _PYTHON.fullmatch(left[0]) and left[1:3] == ["-m", "pip"]:
        left = left[2:]
    if not left or not _PIP.fullmatch(left.pop(0)):
        return None
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option in _WITH_VALUE and left:
            left.pop(0)
    return left[1:] if left[:1] == ["install"] else None
