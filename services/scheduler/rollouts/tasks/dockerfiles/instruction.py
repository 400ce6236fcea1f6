"""Splits a Dockerfile into its instructions, as BuildKit's parser does.

Own code: the parsers in Python are of the time before heredocs, and BuildKit's own, as a package, has no
wheel for ARM.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.scheduler.rollouts.tasks.errors import InvalidTask

DOCKERFILE = "Dockerfile"
_DIRECTIVE = re.compile(r"#\s*([A-Za-z][\w-]*)\s*=\s*(.*?)\s*")
_FLAG = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)")
# Shells take spaces before the name, and builders do that leave the parsing of RUN to one.
_HEREDOC = re.compile(r"(?:^|(?<=\s))\d*<<(-?)[ \t]*(['\"]?)([A-Za-z_][\w.-]*)\2(?=\s|$)")
_WITH_HEREDOCS = ("RUN", "COPY", "ADD", "ONBUILD")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """`is_literal`: variables in it are not replaced, since its delimiter was quoted."""

    name: str
    content: str
    is_literal: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """`rest` follows name and flags, with continued lines joined. A flag may be there several times."""

    name: str
    rest: str
    flags: Sequence[tuple[str, str]] = ()
    heredocs: Sequence[Heredoc] = ()

    def flag(self, name: str) -> str | None:
        return dict(self.flags).get(name)

    @property
    def json_words(self) -> list[str] | None:
        """The words of the exec form; None for the shell form, as which Docker takes what is not JSON."""
        if not self.rest.startswith("["):
            return None
        try:
            words = json.loads(self.rest)
        except (ValueError, RecursionError):
            return None
        is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
        return words if is_list else None


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """`escape` is the character of continuations and in words: a backslash, or a backtick by a directive."""

    instructions: Sequence[Instruction]
    escape: str = "\\"


def read_instructions(task: str, text: str) -> Dockerfile:
    """Raises InvalidTask for a heredoc without an end."""
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    escape = _escape(lines)
    return Dockerfile(list(_instructions(task, iter(lines), escape)), escape)


def _escape(lines: Sequence[str]) -> str:
    """Directives stand before everything else, comments included."""
    for line in lines:
        found = _DIRECTIVE.fullmatch(line.strip())
        if found is None:
            break
        if found[1].lower() == "escape" and found[2] == "`":
            return "`"
    return "\\"


def _instructions(task: str, lines: Iterator[str], escape: str) -> Iterator[Instruction]:
    continued = re.compile(re.escape(escape) + r"[ \t]*$")
    for first in lines:
        if not first.strip() or first.lstrip().startswith("#"):
            continue
        logical = first.lstrip()
        while continued.search(logical):
            logical = continued.sub("", logical)
            # Comments and empty lines may stand between continued lines.
            following = next((line for line in lines if not _is_passed_over(line)), None)
            if following is None:
                break
            logical += following
        name, _, rest = logical.strip().partition(" ")
        name, tab, more = name.partition("\t")
        rest = (f"{more} {rest}" if tab else rest).strip()
        flags, rest = _flags(rest)
        heredocs: list[Heredoc] = []
        if name.upper() in _WITH_HEREDOCS and not rest.startswith("["):
            heredocs = [_heredoc(task, lines, *found) for found in _openings(rest)]
        yield Instruction(name.upper(), rest, flags, heredocs)


def _is_passed_over(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _flags(rest: str) -> tuple[list[tuple[str, str]], str]:
    flags = []
    while found := _FLAG.match(rest):
        flags.append((found[1], found[2] or ""))
        rest = rest[found.end() :]
    return flags, rest


def _openings(rest: str) -> Iterator[tuple[str, str, str]]:
    """Marks of heredocs that stand in no quotes and no arithmetic: whether tabs are cut, quote and name."""
    for found in _HEREDOC.finditer(rest):
        before = rest[: found.start()]
        is_number = before.count("((") > before.count("))")
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0 and not is_number:
            yield found[1], found[2], found[3]


def _heredoc(task: str, lines: Iterator[str], cut: str, quote: str, name: str) -> Heredoc:
    content: list[str] = []
    for line in lines:
        shown = line.lstrip("\t") if cut else line
        if shown == name:
            return Heredoc(name, "".join(f"{each}\n" for each in content), bool(quote))
        content.append(shown)
    raise InvalidTask(task, DOCKERFILE, f"the heredoc {name} has no end.")
