"""Chooses the parts of a RUN that a sandbox without a network and without root can execute."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import join, normpath

from services.scheduler.rollouts.tasks.dockerfiles.pip_install import PipInstall, read_pip_install

# They read and write files of the task. What installs programs or needs root is not among them.
_ALLOWED = frozenset(
    (
        *("[", "awk", "base64", "bash", "bunzip2", "cat", "chmod", "cp", "cut", "date", "dd", "dirname"),
        *("echo", "expr", "false", "find", "git", "grep", "gunzip", "gzip", "head", "install", "ln", "ls"),
        *("md5sum", "mkdir", "mktemp", "mv", "openssl", "paste", "perl", "printf", "pwd", "python"),
        *("python3", "rm", "rmdir", "sed", "seq", "sh", "sha256sum", "shuf", "sleep", "sort", "split"),
        *("tail", "tar", "tee", "test", "touch", "tr", "truncate", "uniq", "unzip", "wc", "xargs", "xz"),
        *("yes", "zip"),
        *("basename", "bzip2", "cmp", "comm", "diff", "env", "file", "join", "jq", "od", "patch", "readlink"),
        *("realpath", "sha1sum", "sha512sum", "sqlite3", "stat", "timeout", "uname", "which", "xxd", "zstd"),
    )
)
# They build files of the task from its own, where the machine has them.
_COMPILERS = frozenset(
    (
        *("ar", "as", "c++", "cc", "clang", "clang++", "cmake", "g++", "gcc", "gfortran", "go", "jar"),
        *("java", "javac", "ld", "make", "node", "objcopy", "objdump", "ranlib", "rustc", "strip"),
    )
)
# Scripts of the task by their own names: what is not there makes the rest of its RUN fail.
_SCRIPT = re.compile(r"/\S+\.(?:sh|bash|py|pl)")
_OUTPUT = re.compile(r"\s-o\s*(\S+)")
# Without an effect on files, or with one that a sandbox has anyway: it belongs to its user.
_SILENT = frozenset({"true", ":", "set", "cd", "export", "umask", "chown", "chgrp", "shopt", "unset", "exit"})
# A RUN of these alone changes nothing that is there.
_ALONE = _SILENT | {"rm", "ls", "echo"}
_WORDS_OF_SHELL = frozenset(
    ("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "{", "}", "!")
)
_NETWORK_OF_GIT = re.compile(r"\bgit\b.*\b(clone|fetch|pull|push|submodule|ls-remote)\b")
_INSTALLS = re.compile(r"-m\s+(pip|ensurepip|venv)\b")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_REDIRECTED = re.compile(r"(?:^|[^<>&\d])\d?>{1,2}\|?\s*([^\s;&|<>()]+)")
# A quoted text, an escaped character, a comment, an operator, or any character.
_TOKEN = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?<!\S)#[^\n]+|&&|.", re.DOTALL)
_UV_RUN = re.compile(r"^(?:\S*/)?uv\s+run\s+(?:--[\w-]+\s+)*(?=(\S+\.py(?:\s|$))?)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MAKE_FOLDERS, _MAKE_FILES = frozenset({"mkdir"}), frozenset({"touch", "tee", "truncate"})
_TO_LAST = frozenset({"cp", "mv", "ln", "install"})
_MAX_LEFT_OUT = 400
# The machine's own in every sandbox.
SYSTEM = frozenset({"bin", "boot", "dev", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr"})


@dataclass(frozen=True, slots=True)
class ChosenRun:
    """`script` is empty where nothing is executed. `folders` are those it makes or writes to.

    `installs` are executed before it.
    """

    script: str
    left_out: Sequence[str] = ()
    folders: Sequence[str] = ()
    installs: Sequence[PipInstall] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """A command, or several with pipes or `||` between them, and the operator before it.

    `known` is its text with the variables that the Dockerfile sets.
    """

    operator: str
    text: str
    known: str = ""


def choose(script: str, cwd: str, variables: Mapping[str, str] | None = None) -> ChosenRun:
    """A script with structure is executed as a whole or not at all.

    `variables` show which folders it writes to; the script itself keeps them.
    """
    known = {name: value for name, value in (variables or {}).items() if re.fullmatch(r"[\w./@:+-]+", value)}
    parts = [replace(part, text=_without_uv(part.text)) for part in _parts(script)]
    parts = [replace(part, known=_put_in(part.text, known)) for part in parts]
    if any(set(_names(part.text)) & _WORDS_OF_SHELL or "(" in _bare(part.text) for part in parts):
        if all(_can_run(part.known, cwd) for part in parts):
            written = [folder for part in parts for folder in _written(part.known, cwd)]
            return ChosenRun(script.strip(), (), written)
        return ChosenRun("", (one_line(script),))
    kept: list[_Part] = []
    left_out: list[str] = []
    folders: list[str] = []
    installs: list[PipInstall] = []
    place = cwd
    for part in parts:
        words = _bare(part.known).split()
        if words[:1] == ["cd"] and len(words) > 1 and "$" not in words[1]:
            place = normpath(join(place, words[1].strip("\"'")))
        if _can_run(part.known, place):
            kept.append(part)
            folders += _written(part.known, place)
        elif install := read_pip_install(part.text, place):
            installs.append(install)
        else:
            left_out.append(one_line(part.text))
    if all(set(_names(part.text)) <= _ALONE and ">" not in part.text for part in kept):
        return ChosenRun("", left_out, installs=installs)
    joined = "".join(f"{part.operator if number else ''} {part.text}" for number, part in enumerate(kept))
    return ChosenRun(joined.strip(), left_out, folders, installs)


def _without_uv(text: str) -> str:
    """What `uv run` executes: the packages of its project are there for all."""
    return _UV_RUN.sub(lambda found: "python3 " if found[1] else "", text)


def _put_in(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), text)


def _can_run(text: str, cwd: str) -> bool:
    bare = _bare(text)
    if "$(" in bare or "`" in bare or _NETWORK_OF_GIT.search(bare) or _INSTALLS.search(bare):
        return False
    is_known = all(
        name in _ALLOWED
        or name in _COMPILERS
        or name in _SILENT
        or name in _WORDS_OF_SHELL
        or name.startswith("./")
        or (_SCRIPT.fullmatch(name) and not _is_of_system(name))
        for name in _names(text)
    )
    return is_known and not any(_is_of_system(folder) for folder in _written(text, cwd))


def _is_of_system(folder: str) -> bool:
    return folder == "/etc" or folder.split("/")[1] in SYSTEM


def _names(text: str) -> Iterator[str]:
    """The program of each command in it; of structures their words too."""
    for command in re.split(r"\|\||&&|[|&;\n]", _bare(text)):
        words = [word for word in command.replace("(", " ( ").split() if not _ASSIGNMENT.match(word)]
        while words and words[0] in _WORDS_OF_SHELL:
            yield words[0]
            if words[0] in ("for", "case"):
                words = []
            words = words[1:]
        if words and not words[0].startswith(("<", ">", "#")):
            yield words[0]


def _written(text: str, cwd: str) -> Iterator[str]:
    """Folders that commands write to, as far as their words say."""
    bare = _bare(text)
    for target in _REDIRECTED.findall(bare):
        if "$" not in target and not target.startswith("/dev/"):
            yield normpath(join(cwd, target.strip("\"'"), ".."))
    for command in re.split(r"\|\||&&|[|&;\n]", bare):
        words = [word.strip("\"'") for word in re.sub(r"\d?>{1,2}\s*\S+|<\S*", "", command).split()]
        named = [word for word in words[1:] if not word.startswith("-") and "$" not in word]
        if not words or not named:
            continue
        if words[0] in _COMPILERS:
            yield from (
                normpath(join(cwd, place, "..")) for place in _OUTPUT.findall(command) if "$" not in place
            )
        if words[0] in _MAKE_FOLDERS:
            yield from (normpath(join(cwd, place)) for word in named for place in _expanded(word))
        elif words[0] in _MAKE_FILES:
            yield from (normpath(join(cwd, word, "..")) for word in named)
        elif words[0] in _TO_LAST:
            yield normpath(join(cwd, named[-1], "." if named[-1].endswith("/") else ".."))


def _expanded(word: str) -> list[str]:
    """`/app/{a,b}` is two folders."""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", word)
    return [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")] if found else [word]


def _bare(text: str) -> str:
    """Without heredocs and with quoted texts emptied of what splits commands."""
    first = text
    if "<<" in text:
        head, _, _ = text.partition("\n")
        first = head
    return re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", _emptied, first)


def _emptied(found: re.Match[str]) -> str:
    quoted = found[0]
    is_code = quoted[0] == '"' and ("$(" in quoted or "`" in quoted)
    plain = re.sub(r"[^\w./$-]", "_", quoted[1:-1])
    return f"$({plain}" if is_code else plain


def one_line(text: str, characters: int = _MAX_LEFT_OUT) -> str:
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 3]}..."


def _parts(script: str) -> Iterator[_Part]:
    """Splits at `&&`, `;` and line ends outside of quotes and brackets. One with a heredoc is whole."""
    if re.search(r"<<-?\s*['\"]?[A-Za-z_]", script):
        yield _Part("", script.strip())
        return
    text, operator, depth = "", "", 0
    for found in _TOKEN.finditer(script):
        piece = found[0]
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece in (";", "\n", "&&") and depth == 0:
            if text.strip():
                yield _Part(operator, text.strip())
                text = ""
            operator = " &&" if piece == "&&" else "\n"
        elif not piece.startswith("#") or len(piece) == 1:
            text += piece
    if text.strip():
        yield _Part(operator, text.strip())
