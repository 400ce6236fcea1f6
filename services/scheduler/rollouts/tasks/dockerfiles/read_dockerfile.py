"""Reads a Dockerfile as far as no image is needed: files, folders, variables and steps of its last stage.

The process sandbox has the programs of the machine. What only an image has is named in notes.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from packaging.utils import canonicalize_name

from proctor.values.rollout import CopiedPath, ImageBuild, SetupStep
from services.scheduler.rollouts.tasks.dockerfiles.build_context import (
    BadArchive,
    Found,
    find_sources,
    unpacked,
    without_ignored,
)
from services.scheduler.rollouts.tasks.dockerfiles.instruction import (
    DOCKERFILE,
    Instruction,
    read_instructions,
)
from services.scheduler.rollouts.tasks.dockerfiles.pip_install import PipInstall, listed_packages
from services.scheduler.rollouts.tasks.dockerfiles.run_steps import ChosenRun, choose, one_line
from services.scheduler.rollouts.tasks.dockerfiles.stage import Stage, begins_in, begins_in_root
from services.scheduler.rollouts.tasks.dockerfiles.variables import BadWord, Variables
from services.scheduler.rollouts.tasks.errors import InvalidTask
from services.scheduler.rollouts.tasks.task_folder import Files, FolderFile

# They change nothing of the files, or only how a container starts.
_WITHOUT_EFFECT = frozenset(
    {"LABEL", "MAINTAINER", "EXPOSE", "CMD", "ENTRYPOINT", "HEALTHCHECK", "STOPSIGNAL"}
)
_OF_WORKDIR = frozenset({"FROM", "ARG", "ENV", "WORKDIR"})
_NOTED = frozenset({"USER", "VOLUME", "ONBUILD"})
_COPY_FLAGS = frozenset({"from", "chown", "chmod", "link", "keep-git-dir", "checksum", "unpack"})
_SHELLS = ("sh", "bash", "ash", "python3", "python")
# A list of words that is a script of a shell.
_OF_SHELL = (r"(?:/usr)?(?:/bin/)?(?:ba)?sh", r"-[eux]*l?c", r"(?s:.+)")
_OF_NO_FILES = re.compile(r"(?:^|,)type=(?:cache|tmpfs)(?:,|$)")
# Of an image that is not built.
_MAX_LEFT_OUT = 100
_SHOWN_LEFT_OUT, _SHOWN_CHARACTERS = 8, 80


@dataclass(frozen=True, slots=True)
class DockerfileFacts:
    """`files` by absolute paths. `is_at_root`: commands start in the root, and not in a folder that is not
    known. WORKDIR and `steps`, the RUNs that are executed, make the `folders`.

    `packages` are those that RUN installs by pip. `build` is for engines that build images. `stages` are
    earlier ones whose steps are executed too.
    """

    workdir: str = "/"
    is_at_root: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    steps: tuple[SetupStep, ...] = ()
    notes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    build: ImageBuild = field(default_factory=ImageBuild)
    stages: tuple["StageFacts", ...] = ()


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A stage whose steps make what the last one copies. It has no stages of its own."""

    facts: DockerfileFacts
    copies: tuple[CopiedPath, ...]


def read_dockerfile(task: str, text: str, context: Files) -> DockerfileFacts:
    """`context` are the files of its folder. Raises InvalidTask."""
    dockerfile = read_instructions(task, text)
    build = _Build(task, without_ignored(context), dockerfile.escape)
    for instruction in dockerfile.instructions:
        try:
            build.add(instruction)
        except (BadWord, BadArchive) as error:
            raise InvalidTask(task, DOCKERFILE, str(error), instruction.name) from error
    return build.facts()


def read_workdir(task: str, text: str) -> DockerfileFacts:
    """Where commands of an image start that was built from it. Nothing of it is refused."""
    dockerfile = read_instructions(task, text)
    build = _Build(task, {}, dockerfile.escape)
    try:
        for instruction in dockerfile.instructions:
            if instruction.name in _OF_WORKDIR:
                build.add(instruction)
        return DockerfileFacts(workdir=build.facts().workdir)
    except (BadWord, InvalidTask):
        return DockerfileFacts()


class _Build:
    """The stages, of which the last is the image's; an instruction belongs to the latest."""

    def __init__(self, task: str, context: Files, escape: str) -> None:
        self._task, self._context, self._escape = task, context, escape
        self._global: dict[str, str] = {}
        self._stages: list[Stage] = []
        self._images: list[str] = []
        self._fetches = False
        self._of: Mapping[str, Callable[[Instruction], None]] = {
            "FROM": self._from,
            "WORKDIR": self._workdir,
            "ENV": self._env,
            "COPY": self._copy,
            "ADD": self._copy,
            "RUN": self._run,
            "SHELL": self._shell,
        }

    @property
    def _stage(self) -> Stage:
        if not self._stages:
            raise InvalidTask(self._task, DOCKERFILE, "the first instruction must be FROM.")
        return self._stages[-1]

    def add(self, instruction: Instruction) -> None:
        name = instruction.name
        if name == "ARG":
            self._arg(instruction)
        elif name in self._of:
            self._of[name](instruction)
        elif name in _NOTED:
            self._stage.notes.append(f"{name} of the Dockerfile has no effect")
        elif name not in _WITHOUT_EFFECT:
            raise InvalidTask(self._task, DOCKERFILE, f"there is no instruction {name[:40]!r}.")

    def facts(self) -> DockerfileFacts:
        stage = self._stage
        used = list({id(each): each for each, _ in stage.copies}.values())
        notes = [f"the image {stage.image} is not used: the machine's programs are"]
        notes += [note for each in (stage, *used) for note in each.notes]
        for each in used:
            notes += [f"{path.source} of the stage {each.name} is not there" for _, path in each.copies]
        left_out = [command for each in (stage, *used) for command in each.left_out]
        if left_out:
            shown = [one_line(command, _SHOWN_CHARACTERS) for command in left_out[:_SHOWN_LEFT_OUT]]
            more = len(left_out) - _SHOWN_LEFT_OUT
            rest = f"; and {more} more" if more > 0 else ""
            notes.append(f"of RUN these are not executed: {'; '.join(shown)}{rest}")
        # Packages of a stage are there for the last one too, where it has none of the name.
        packages = {_name_of(each): each for by in (*reversed(used), stage) for each in by.packages}
        return replace(
            _facts_of(stage),
            notes=tuple(notes),
            packages=tuple(packages.values()),
            build=ImageBuild(
                tuple(dict.fromkeys(self._images)), self._fetches, left_out=tuple(left_out[:_MAX_LEFT_OUT])
            ),
            stages=tuple(
                StageFacts(_facts_of(each), tuple(path for of, path in stage.copies if of is each))
                for each in used
            ),
        )

    def _variables(self, values: Mapping[str, str]) -> Variables:
        return Variables(values, self._escape)

    def _words(self, instruction: Instruction) -> list[str]:
        """Sources and target; in the form of a list they may have spaces."""
        words = instruction.json_words
        variables = self._variables(self._stage.variables)
        return [variables.replaced(word) for word in words or instruction.rest.split()]

    def _from(self, instruction: Instruction) -> None:
        words = self._variables(self._global).replaced(instruction.rest).split() or [""]
        name = words[2] if len(words) > 2 and words[1].lower() == "as" else str(len(self._stages))
        earlier = self._found_stage(words[0])
        if not earlier:
            self._images.append(words[0])
        self._stages.append(
            earlier.next_stage(name)
            if earlier
            else Stage(name, words[0], begins_in(words[0]), begins_in_root(words[0]))
        )

    def _found_stage(self, name: str) -> Stage | None:
        """By its name, or its number where it has none. The latest of a name counts."""
        named = (stage for stage in reversed(self._stages) if stage.name.lower() == name.lower())
        number = int(name) if name.isdecimal() and len(name) < 4 else len(self._stages)
        return next(named, None) or (self._stages[number] if number < len(self._stages) else None)

    def _arg(self, instruction: Instruction) -> None:
        """Before the first FROM they are for images, until a stage names them too."""
        values = self._stage.variables if self._stages else self._global
        for name, value in self._variables(values).pairs(instruction.rest):
            if not self._stages:
                self._global[name] = value or ""
            elif value is not None or name in self._global:
                self._stage.arguments[name] = self._global[name] if value is None else value

    def _env(self, instruction: Instruction) -> None:
        pairs = self._variables(self._stage.variables).pairs(instruction.rest)
        self._stage.environment |= {name: value or "" for name, value in pairs if name}

    def _workdir(self, instruction: Instruction) -> None:
        stage = self._stage
        stage.workdir = stage.make_folder(self._variables(stage.variables).replaced(instruction.rest) or "/")
        stage.knows_workdir = True
        stage.made.add(stage.workdir)

    def _shell(self, instruction: Instruction) -> None:
        if not (words := instruction.json_words):
            raise InvalidTask(self._task, DOCKERFILE, "it must be a list in JSON.", "SHELL")
        self._stage.shell = tuple(words)

    def _run(self, instruction: Instruction) -> None:
        stage = self._stage
        for option, value in instruction.flags:
            found = re.search(r"(?:^|,)from=([^,]+)", value) if option == "mount" else None
            if found and not self._found_stage(found[1]):
                self._images.append(found[1])
        program, script = self._program(instruction)
        # A cache is empty where none was kept, and a file system in memory is empty always.
        mounts = [value for option, value in instruction.flags if option == "mount"]
        is_mounted = not all(_OF_NO_FILES.search(each) for each in mounts)
        is_plain = program[0].rsplit("/", 1)[-1] in _SHELLS and not is_mounted
        if is_plain and program[0].endswith(("python", "python3")):
            chosen = ChosenRun(script)
        else:
            chosen = choose(script, stage.workdir, {**stage.arguments, **stage.environment})
        for install in chosen.installs:
            self._install(install)
        if not is_plain or not chosen.script:
            stage.left_out += chosen.left_out or ([] if is_plain else [one_line(script)])
            return
        stage.left_out += chosen.left_out
        for folder in chosen.folders:
            stage.make_folder(folder)
        stage.made.update(chosen.folders)
        variables = {**stage.arguments, **stage.environment}
        stage.steps.append(SetupStep((*program, chosen.script), stage.workdir, variables))

    def _install(self, install: PipInstall) -> None:
        stage = self._stage
        variables = self._variables(stage.variables)
        try:
            packages = [variables.replaced_in_text(package) for package in install.packages]
            for file in install.files:
                packages += listed_packages(stage.files[file].content)
        except (BadWord, KeyError):
            stage.left_out.append(one_line(install.text))
        else:
            stage.packages += packages

    def _program(self, instruction: Instruction) -> tuple[tuple[str, ...], str]:
        """The shell with its options, and the script. A heredoc alone is the script."""
        words = instruction.json_words
        if words is not None and len(words) == len(_OF_SHELL) and all(map(re.fullmatch, _OF_SHELL, words)):
            return (words[0], words[1]), words[2]
        if words is not None:
            return ("/bin/sh", "-c"), shlex.join(words)
        if len(instruction.heredocs) == 1 and _is_heredoc(instruction.rest):
            script = instruction.heredocs[0].content
            first = script.partition("\n")[0]
            if first.startswith("#!"):
                named = first.removeprefix("#!").split()
                return (named[-1].rsplit("/", 1)[-1], "-c"), script
            return self._stage.shell, script
        bodies = (f"{each.content}{each.name}\n" for each in instruction.heredocs)
        script = instruction.rest + ("\n" + "".join(bodies) if instruction.heredocs else "")
        return self._stage.shell, script

    def _copy(self, instruction: Instruction) -> None:
        if unknown := {name for name, _ in instruction.flags} - _COPY_FLAGS:
            problem = f"the option --{min(unknown)} is not read."
            raise InvalidTask(self._task, DOCKERFILE, problem, instruction.name)
        *sources, target = self._words(instruction) or [""]
        if not sources:
            raise InvalidTask(self._task, DOCKERFILE, "it needs a source and a target.", instruction.name)
        found = [each for source in sources for each in self._sources(instruction, source, target)]
        mode = instruction.flag("chmod")
        is_program = bool(int(mode[-3:], 8) & 0o100) if mode and re.fullmatch("[0-7]{3,4}", mode) else None
        self._stage.copy(found, target, is_program=is_program)

    def _sources(self, instruction: Instruction, source: str, target: str) -> list[Found]:
        """Files that a source names. What needs an image or a network is noted."""
        written = f"{instruction.name} {source} of the Dockerfile has no effect"
        if _is_heredoc(source):
            return [self._heredoc(instruction, source)]
        if "://" in source or source.startswith("git@"):
            self._fetches = True
            self._stage.notes.append(f"{written}: there is no network")
            return []
        if (name := instruction.flag("from")) is not None:
            return self._of_stage(self._variables(self._stage.variables).replaced(name), source, target)
        found = list(find_sources(self._context, source))
        if not found:
            raise InvalidTask(self._task, DOCKERFILE, f"the folder has no {source!r}.", instruction.name)
        if instruction.name == "ADD" and instruction.flag("unpack") != "false":
            return [self._unpacked(each) for each in found]
        return found

    def _of_stage(self, name: str, source: str, target: str) -> list[Found]:
        """Files that are known. Those that commands of the stage make are copied when they are executed."""
        stage = self._found_stage(name)
        if not stage:
            self._images.append(name)
        found = list(stage.find(source)) if stage else []
        if stage and stage.steps:
            self._stage.copy_later(stage, source, target)
        elif not found:
            needed = f"what makes it in the stage {name} is not executed" if stage else f"it is of {name}"
            self._stage.notes.append(f"COPY {source} of the Dockerfile has no effect: {needed}")
        return found

    def _heredoc(self, instruction: Instruction, source: str) -> Found:
        name = source.lstrip("<-")
        each = next(each for each in instruction.heredocs if each.name == name)
        text = each.content
        if not each.is_literal:
            text = self._variables(self._stage.variables).replaced_in_text(text)
        return Found(each.name, {"": FolderFile(text.encode())})

    def _unpacked(self, found: Found) -> Found:
        """ADD unpacks a local tar; a folder is copied as it is."""
        archive = unpacked(found.files[""].content) if found.is_file else None
        if archive is None:
            return found
        files, links = archive
        if links:
            self._stage.notes.append(f"{links} links of {found.name} are left out")
        return Found(found.name, files)


def _facts_of(stage: Stage) -> DockerfileFacts:
    made = tuple(sorted(stage.made))
    return DockerfileFacts(
        workdir=stage.workdir,
        is_at_root=stage.knows_workdir and stage.workdir == "/",
        environment=stage.environment,
        files=stage.files,
        folders=made,
        steps=tuple(stage.steps),
    )


def _name_of(package: str) -> str:
    found = re.match(r"[\w.-]+", package)
    return canonicalize_name(found[0]) if found else package


def _is_heredoc(word: str) -> bool:
    return re.fullmatch(r"<<-?\s*['\"]?[A-Za-z_][\w.-]*['\"]?", word) is not None
