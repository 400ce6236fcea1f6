"""A stage of a build: the files, folders and variables that its instructions have made so far."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from posixpath import join, normpath

from proctor.values.rollout import SetupStep
from services.scheduler.rollouts.tasks.dockerfiles.build_context import Found, find_sources
from services.scheduler.rollouts.tasks.task_folder import FolderFile

# That of images without one of their own.
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Folders that every image has.
_THERE = ("/", "/etc", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/usr/local/bin", "/var")  # noqa: S108  # inside


@dataclass(slots=True)
class Stage:
    """`files` by absolute paths; `folders` are known to be there, and `made` are those of WORKDIR and RUN.

    `left_out` are the commands of RUN that are not executed, `packages` those that it installs by pip.
    """

    name: str
    image: str = ""
    workdir: str = "/"
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

    def next_stage(self, name: str) -> "Stage":
        """A stage that begins with what this one has made. Arguments end with their stage."""
        return replace(deepcopy(self), name=name, arguments={})

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
