"""A stage of a build: the files, folders and variables that its instructions have made so far."""

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from posixpath import join, normpath, split

from proctor.values.rollout import CopiedPath, SetupStep
from services.scheduler.rollouts.tasks.dockerfiles.build_context import Found, find_sources
from services.scheduler.rollouts.tasks.task_folder import FolderFile

# That of images without one of their own.
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A sandbox gives their folders to a task, and no files in them.
_CLOSED = ("/", "/etc", "/opt")
# Folders that every image has.
_THERE = ("/", "/etc", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/usr/local/bin", "/var")  # noqa: S108  # inside
# Images that begin in a folder of their own: those of Terminal-Bench's tasks, and one of Docker Hub's.
_BEGIN_IN = {re.compile(r"(?:.*/)?t-bench/"): "/app", re.compile(r"golang(?:[:@].*)?"): "/go"}
# Those that Docker Hub looks after begin in the root, but for a few.
_OF_DOCKER_HUB = re.compile(
    r"(?:docker\.io/)?(?:library/)?(?!(?:composer|drupal|gradle|httpd|joomla|perl|php|tomcat|wordpress)\b)"
    r"[\w.-]+(?::[\w.-]+)?(?:@sha256:\w+)?"
)


def begins_in(image: str) -> str:
    """The working folder that a Dockerfile inherits; the root, as of most images, where it is not known."""
    return next((folder for pattern, folder in _BEGIN_IN.items() if pattern.match(image)), "/")


def begins_in_root(image: str) -> bool:
    """Whether that is known."""
    return begins_in(image) == "/" and _OF_DOCKER_HUB.fullmatch(image) is not None


@dataclass(slots=True)
class Stage:
    """`files` by absolute paths; `folders` are known to be there, and `made` are those of WORKDIR and RUN.

    `knows_workdir`: by an instruction or by its image.

    `left_out` are the commands of RUN that are not executed, `packages` those that it installs by pip.
    `copies` are paths of earlier stages that their commands may make.
    """

    name: str
    image: str = ""
    workdir: str = "/"
    knows_workdir: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    files: dict[str, FolderFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: set(_THERE))
    steps: list[SetupStep] = field(default_factory=list)
    shell: tuple[str, ...] = ("/bin/sh", "-c")
    left_out: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    copies: list[tuple["Stage", CopiedPath]] = field(default_factory=list)

    def next_stage(self, name: str) -> "Stage":
        """A stage that begins with what this one has made. Arguments end with their stage."""
        copies, self.copies = self.copies, []
        following = replace(deepcopy(self), name=name, arguments={}, copies=[*copies])
        self.copies = copies
        return following

    @property
    def variables(self) -> dict[str, str]:
        """Variables win over arguments. The image's own are not known, but for its path."""
        return {"PATH": IMAGE_PATH, **self.arguments, **self.environment}

    def make_folder(self, path: str) -> str:
        made = normpath(join(self.workdir, path))
        while made not in self.folders:
            self.folders.add(made)
            made = normpath(join(made, ".."))
        return normpath(join(self.workdir, path))

    def put(self, path: str, file: FolderFile) -> None:
        self.make_folder(join(path, ".."))
        self.files[normpath(path)] = file

    def find(self, source: str) -> Iterator[Found]:
        """What another stage copies of this one."""
        inner = {path.lstrip("/"): file for path, file in self.files.items()}
        yield from find_sources(inner, source)

    def copy_later(self, stage: "Stage", source: str, target: str) -> None:
        """Copies what the commands of an earlier stage will have made."""
        place = normpath(join(self.workdir, target))
        is_folder = target.endswith(("/", "/.")) or target in (".", "..") or place in self.folders
        from_root = normpath(join("/", source))
        self.copies.append((stage, CopiedPath(from_root, f"{place}/" if is_folder else place)))
        above, name = split(place)
        # Files are not given to a task in these folders, other folders are.
        is_folder = is_folder or above in _CLOSED
        self.made.add(self.make_folder(place if is_folder else above))
        if "." not in name:
            # Whether it will be a folder is not known; one is likely.
            self.make_folder(place)

    def copy(self, found: list[Found], target: str, *, is_program: bool | None = None) -> None:
        """A single file is the target itself, unless that is a folder or ends with a slash."""
        place = normpath(join(self.workdir, target))
        is_folder = target.endswith(("/", "/.")) or target in (".", "..") or place in self.folders
        for each in found:
            if is_program is not None:
                files = {path: FolderFile(file.content, is_program) for path, file in each.files.items()}
                each = Found(each.name, files)  # noqa: PLW2901  # the same with another mode
            for path, file in each.files.items():
                inner = path or (each.name if is_folder or len(found) > 1 else "")
                self.put(join(place, inner), file)
