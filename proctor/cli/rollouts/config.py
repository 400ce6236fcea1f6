"""The configuration of `proctor rollouts run`: tasks, models and rollouts, as TOML."""

import atexit
import json
import shutil
import tempfile
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message

from proctor.cli.rollouts.sources.git_folders import export_folder
from proctor.cli.rollouts.sources.registry import open_registry
from proctor.cli.rollouts.sources.task_folders import is_task, task_folders
from proctor.client.errors import Refused
from proctor.v1 import rollout_pb2, run_pb2
from proctor.values.rollout import AgentKind, RolloutAgent, VerificationPlace

M = TypeVar("M", bound=Message)

_ROOT_KEYS = {"name", "parallel", "project_id", "max_cost", "agent", "params", "tasks"}
_TASK_KEYS = {
    "prepared_dir",
    "dataset",
    "registry",
    "mirrors",
    "git",
    "revision",
    "model",
    "rollouts",
    "apply_overrides",
    "overrides",
    "environment_variables",
    "image",
}
_REPO_FACTS = ("git_url", "branch", "start_commit_sha", "end_commit_sha", "subdir", "sparse_checkout")
_KINDS, _PLACES = tuple(AgentKind), tuple(VerificationPlace)
_OF_DATASET = ("registry", "mirrors")


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One entry of `[[tasks]]`. `overrides` is a file; `keeps_own`: the task's own overrides.json counts.

    `source` names the folder for people, where it was read from a repository.
    """

    folder: Path
    model: str
    rollouts: int = 1
    keeps_own: bool = True
    overrides: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    source: str = ""

    @property
    def task(self) -> Hashable:
        """Equal for entries that differ in their model and rollouts only."""
        variables = tuple(sorted(self.variables.items()))
        return self.folder, self.source, self.keeps_own, self.overrides, variables, self.image

    @property
    def shown(self) -> str:
        return self.source or str(self.folder)

    @property
    def repository(self) -> dict[str, Any]:
        """Facts of the repository that the task is about, and of the one that its folder was read from."""
        facts: dict[str, Any] = {}
        try:
            about = json.loads((self.folder / "tb_meta.json").read_text(encoding="utf-8-sig")).get("repo")
        except (OSError, ValueError, AttributeError):
            about = None
        if isinstance(about, dict):
            facts |= {name: about[name] for name in _REPO_FACTS if about.get(name)}
        if self.source:
            place, _, path = self.source.rpartition(":")
            repository, _, commit = place.rpartition("@")
            facts["read_from"] = {"repository": repository, "commit": commit, "path": path}
        return facts


@dataclass(frozen=True, slots=True)
class RolloutsConfig:
    """`document` is the file as it was read. `parallel`: rollouts at a time; 0: all that workers take."""

    path: Path
    name: str
    entries: Sequence[TaskEntry]
    agent: rollout_pb2.RolloutAgent
    params: run_pb2.GenerationParams
    document: Mapping[str, Any]
    parallel: int = 0
    project_id: int = 0
    max_cost: float | None = None

    @property
    def total(self) -> int:
        """Rollouts of all entries."""
        return sum(entry.rollouts for entry in self.entries)

    @property
    def tasks(self) -> Sequence[TaskEntry]:
        """Each task once, as the entry that names it first."""
        first: dict[Hashable, TaskEntry] = {}
        for entry in self.entries:
            first.setdefault(entry.task, entry)
        return list(first.values())

    @property
    def model_rollouts(self) -> Mapping[str, Sequence[int]]:
        """Rollouts of each model at each of `tasks`: 0 where no entry orders it, the sum of equal entries."""
        index = {entry.task: number for number, entry in enumerate(self.tasks)}
        found: dict[str, list[int]] = {}
        for entry in self.entries:
            found.setdefault(entry.model, [0] * len(index))[index[entry.task]] += entry.rollouts
        return found


def read_config(path: Path) -> RolloutsConfig:
    """Raises Refused. Paths in the file are relative to its folder, or else to the current one."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not TOML: {error}.") from error
    return config_of(path, document)


def config_of(path: Path, document: Mapping[str, Any]) -> RolloutsConfig:
    """The configuration that a document is; `path` is for messages, and where its paths begin."""
    _refuse_unknown(path, document, _ROOT_KEYS)
    listed = document.get("tasks")
    if not isinstance(listed, list) or not listed:
        raise Refused(f"{path}: tasks is missing: write [[tasks]] with prepared_dir or dataset, and model.")
    folders = _Folders(path)
    entries = [
        entry for number, fields in enumerate(listed, 1) for entry in _entries(folders, number, fields)
    ]
    return RolloutsConfig(
        path=path,
        name=_text(path, document, "name", path.stem),
        entries=entries,
        agent=_agent(path, document.get("agent", {})),
        params=_message(path, "params", document.get("params", {}), run_pb2.GenerationParams()),
        document=document,
        parallel=_count(path, document, "parallel", 0),
        project_id=_count(path, document, "project_id", 0),
        max_cost=document.get("max_cost"),
    )


@dataclass(slots=True)
class _Folders:
    """The folders of entries. Equal folders of a repository, and equal data sets, are written once."""

    path: Path
    written: dict[tuple[str, str, str], Sequence[tuple[Path, str]]] = field(default_factory=dict)

    def of(self, location: Path, fields: Mapping[str, Any]) -> Sequence[tuple[Path, str]]:
        """Task folders, and the name of each for people where that is another. Raises Refused."""
        if dataset := _text(location, fields, "dataset", ""):
            if named := next((key for key in ("prepared_dir", "git", "revision") if key in fields), ""):
                raise Refused(f"{location}: dataset and {named}: give one of them.")
            return self._of_registry(location, fields, dataset)
        if named := next((key for key in _OF_DATASET if key in fields), ""):
            raise Refused(f"{location}: {named} is of a data set: set dataset.")
        folder, source = self._of_folder(location, fields)
        if is_task(folder):
            return [(folder, source)]
        inner = [(path, source and f"{source}/{path.name}") for path in task_folders(folder)]
        return inner or [(folder, source)]

    def _of_registry(
        self, location: Path, fields: Mapping[str, Any], dataset: str
    ) -> Sequence[tuple[Path, str]]:
        registry = str(_existing(self.path, location, _text(location, fields, "registry")))
        mirrors = _text(location, fields, "mirrors", "")
        mirrors = mirrors and str(_existing(self.path, location, mirrors))
        key = (registry, mirrors, dataset)
        if key not in self.written:
            self.written[key] = open_registry(registry, mirrors).folders(dataset, _temporary_folder())
        return self.written[key]

    def _of_folder(self, location: Path, fields: Mapping[str, Any]) -> tuple[Path, str]:
        named = _text(location, fields, "prepared_dir")
        repository = _text(location, fields, "git", "")
        revision = _text(location, fields, "revision", "")
        if not repository:
            if revision:
                raise Refused(f"{location}: revision is of a repository: set git.")
            return _existing(self.path, location, named), ""
        if "://" not in repository:
            repository = str(_existing(self.path, location, repository))
        key = (repository, revision, named)
        if key not in self.written:
            exported = export_folder(repository, revision, named, _temporary_folder())
            self.written[key] = [(exported.path, str(exported))]
        return self.written[key][0]


def _temporary_folder() -> Path:
    """Deleted at the end of the program."""
    into = Path(tempfile.mkdtemp(prefix="proctor-tasks-"))
    atexit.register(shutil.rmtree, into, ignore_errors=True)
    return into


def _entries(folders: _Folders, number: int, fields: Any) -> Sequence[TaskEntry]:
    """The entry, or one for each task where its folder is one of task folders, or a data set."""
    path = folders.path
    location = Path(f"{path}, tasks {number}")
    if not isinstance(fields, dict):
        raise Refused(f"{location}: it must be a table.")
    _refuse_unknown(location, fields, _TASK_KEYS)
    variables = fields.get("environment_variables", {})
    if not isinstance(variables, dict):
        raise Refused(f"{location}: environment_variables must be a table.")
    overrides = _text(location, fields, "overrides", "")
    model = _text(location, fields, "model")
    entry = TaskEntry(
        folder=path,
        model=model,
        rollouts=_count(location, fields, "rollouts", 1, minimum=1),
        keeps_own=fields.get("apply_overrides", True) is not False,
        overrides=_existing(path, location, overrides) if overrides else None,
        variables={name: str(value) for name, value in variables.items()},
        image=_text(location, fields, "image", ""),
    )
    found = folders.of(location, fields)
    return [replace(entry, folder=folder, source=source) for folder, source in found]


def _agent(path: Path, fields: Any) -> rollout_pb2.RolloutAgent:
    if not isinstance(fields, dict):
        raise Refused(f"{path}: agent must be a table.")
    kind = fields.get("kind", RolloutAgent().kind)
    if kind not in _KINDS:
        raise Refused(f"{path}: agent.kind is {kind!r}, but must be {', '.join(_KINDS)}.")
    place = fields.get("verification", RolloutAgent().verification)
    if place not in _PLACES:
        raise Refused(f"{path}: agent.verification is {place!r}, but must be {' or '.join(_PLACES)}.")
    named = {
        **fields,
        "kind": f"AGENT_KIND_{str(kind).upper()}",
        "verification": f"VERIFICATION_PLACE_{str(place).upper()}",
    }
    return _message(path, "agent", named, rollout_pb2.RolloutAgent())


def _message(path: Path, key: str, fields: Any, message: M) -> M:
    try:
        return ParseDict(fields, message)
    except (ParseError, AttributeError, TypeError) as error:
        raise Refused(f"{path}: {key}: {error}.") from error


def _existing(path: Path, location: Path, named: str) -> Path:
    for found in (path.parent / named, Path(named)):
        if found.exists():
            return found
    raise Refused(f"{location}: there is no {named}.")


def _text(location: Path, fields: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = fields.get(key, default)
    if not isinstance(value, str) or (default is None and not value):
        raise Refused(f"{location}: {key} is missing, or no text.")
    return value


def _count(location: Path, fields: Mapping[str, Any], key: str, default: int, *, minimum: int = 0) -> int:
    value = fields.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise Refused(f"{location}: {key} must be a number of at least {minimum}.")
    return value


def _refuse_unknown(location: Path, fields: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(fields.keys() - known)
    if unknown:
        raise Refused(f"{location}: there is no key {unknown[0]!r}. There are: {', '.join(sorted(known))}.")
