"""The part of a Dockerfile that needs no image: copied files, the working folder and variables.

The process sandbox has the programs of the machine. What only an image has is named in notes.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import join, normpath

from services.scheduler.rollouts.tasks.errors import InvalidTask
from services.scheduler.rollouts.tasks.task_folder import Files, FolderFile, relative_to

_FILE = "Dockerfile"
_CONTINUED = re.compile(r"\\\s*\n")
# They change nothing of the files, or only how a container starts.
_WITHOUT_EFFECT = frozenset(
    {"LABEL", "MAINTAINER", "EXPOSE", "CMD", "ENTRYPOINT", "HEALTHCHECK", "STOPSIGNAL", "SHELL", "ARG"}
)
_MAKES_FOLDERS = re.compile(r"mkdir\s[^&|;]*")


@dataclass(slots=True)
class DockerfileFacts:
    """`files` by absolute paths."""

    workdir: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, FolderFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def files_below(self, task: str, folder: str) -> dict[str, FolderFile]:
        """Files by their paths in the folder. Raises InvalidTask where a file lies elsewhere."""
        found = {}
        for path, file in self.files.items():
            inner = relative_to(path, folder)
            if inner is None or inner == ".":
                problem = f"it copies to {path}, outside of the working folder {folder}."
                raise InvalidTask(task, _FILE, problem, "COPY")
            found[inner] = file
        return found


def read_dockerfile(task: str, text: str, context: Files) -> DockerfileFacts:
    """`context` are the files that COPY may name. Raises InvalidTask."""
    facts = DockerfileFacts()
    ran = 0
    for name, rest in _instructions(text):
        match name:
            case "FROM":
                facts.notes.append(
                    f"the image {rest.partition(' ')[0]} is not used: the machine's programs are"
                )
            case "WORKDIR":
                facts.workdir = normpath(join(facts.workdir, rest.strip("\"'")))
            case "ENV":
                facts.environment |= _variables(task, rest)
            case "COPY" | "ADD":
                _copy(task, facts, rest, context)
            case "RUN":
                ran += not _MAKES_FOLDERS.fullmatch(rest)
            case "USER" | "VOLUME" | "ONBUILD":
                facts.notes.append(f"{name} of the Dockerfile has no effect")
            case _ if name not in _WITHOUT_EFFECT:
                raise InvalidTask(task, _FILE, f"there is no instruction {name[:40]!r}.")
    if ran:
        facts.notes.append(f"{ran} RUN of the Dockerfile are not executed: what they install must be there")
    return facts


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in _CONTINUED.sub(" ", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name:
            yield name.upper(), rest.strip()


def _variables(task: str, rest: str) -> dict[str, str]:
    """`ENV A=1 B="2 3"` and the old `ENV A 1`."""
    if "=" not in rest.split(" ", 1)[0]:
        name, _, value = rest.partition(" ")
        return {name: value.strip()}
    pairs = [word.partition("=") for word in _words(task, rest, "ENV")]
    return {name: value for name, _, value in pairs if name}


def _words(task: str, rest: str, instruction: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise InvalidTask(task, _FILE, "its quotes are not closed.", instruction) from error


def _copy(task: str, facts: DockerfileFacts, rest: str, context: Files) -> None:
    words = _words(task, rest, "COPY")
    flags = [word for word in words if word.startswith("--")]
    *sources, target = [word for word in words if not word.startswith("--")] or [""]
    if any(flag.startswith("--from") for flag in flags) or any("://" in source for source in sources):
        facts.notes.append(f"COPY {rest} of the Dockerfile has no effect: it needs an image or a network")
        return
    if not sources:
        raise InvalidTask(task, _FILE, "it needs a source and a target.", "COPY")
    folder = normpath(join(facts.workdir, target))
    for source in sources:
        found = dict(_sources(context, normpath(source).lstrip("/")))
        if not found:
            raise InvalidTask(task, _FILE, f"the folder has no {source!r}.", "COPY")
        is_renamed = "" in found and not target.endswith("/") and target not in (".", "./")
        for path, file in found.items():
            name = path or ("" if is_renamed else normpath(source).rsplit("/", 1)[-1])
            facts.files[normpath(join(folder, name))] = file


def _sources(context: Files, source: str) -> Iterator[tuple[str, FolderFile]]:
    """Files by their paths below the source; the source itself, where it is a file, has an empty path."""
    for path, file in context.items():
        if source in (".", ""):
            yield path, file
        elif path == source:
            yield "", file
        elif path.startswith(f"{source}/"):
            yield path.removeprefix(f"{source}/"), file
