"""Data sets of tasks by their names, from a registry and clones of its repositories on this machine.

A registry is the file `registry.json` of Harbor, whose data sets list tasks, or of Terminal-Bench, whose data
sets name a folder. Nothing is fetched.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proctor.cli.rollouts.sources.git_folders import export_folder, read_file
from proctor.cli.rollouts.sources.task_folders import task_folders
from proctor.client.errors import Refused

REGISTRY = "registry.json"
# Of both forms: the newest commit.
_HEAD = "head"


@dataclass(frozen=True, slots=True)
class RegisteredTask:
    """A task in a repository at a revision; without `git_url` in a folder of this machine."""

    name: str
    path: str
    git_url: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Registry:
    """`folder` has its local tasks, `mirrors` the clones of repositories."""

    shown: str
    folder: Path
    mirrors: Path
    datasets: Sequence[Mapping[str, Any]]

    def folders(self, dataset: str, into: Path) -> Sequence[tuple[Path, str]]:
        """The task folders of NAME@VERSION, each with its name for people. Raises Refused."""
        found = self._dataset(dataset)
        try:
            if "github_url" in found:
                return list(self._folders_of_terminal_bench(found, into))
            tasks = [_task(fields) for fields in found["tasks"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise Refused(f"{self.shown}: {dataset} has not the form of a data set ({error}).") from error
        if not tasks:
            raise Refused(f"{self.shown}: {dataset} has no tasks.")
        self._check_clones({task.git_url for task in tasks if task.git_url})
        return [self._folder(task, into) for task in tasks]

    def _dataset(self, dataset: str) -> Mapping[str, Any]:
        name, _, version = dataset.partition("@")
        versions = {str(each.get("version")): each for each in self.datasets if each.get("name") == name}
        if version in versions:
            return versions[version]
        if versions:
            raise Refused(f"{self.shown}: name one version of {name}: {_at_most(versions, f'{name}@')}.")
        names = sorted({str(each.get("name")) for each in self.datasets})
        raise Refused(f"{self.shown} has no data set {name}. There are: {_at_most(names)}.")

    def _folder(self, task: RegisteredTask, into: Path) -> tuple[Path, str]:
        if task.git_url:
            exported = export_folder(str(self._clone(task.git_url)), task.revision, task.path, into)
            return exported.path, str(exported)
        folder = Path(task.path).expanduser()
        folder = folder if folder.is_absolute() else self.folder / folder
        if not folder.is_dir():
            raise Refused(f"{self.shown}: there is no folder {folder} of the task {task.name}.")
        return folder, ""

    def _folders_of_terminal_bench(self, fields: Mapping[str, Any], into: Path) -> Iterator[tuple[Path, str]]:
        git_url, commit = str(fields["github_url"]), str(fields.get("commit_hash") or _HEAD)
        revision = str(fields.get("branch") or "") if commit == _HEAD else commit
        self._check_clones({git_url})
        exported = export_folder(str(self._clone(git_url)), revision, str(fields["dataset_path"]), into)
        folders = {folder.name: folder for folder in task_folders(exported.path)}
        wanted = fields.get("task_id_subset") or list(folders)
        missing = [name for name in wanted if name not in folders]
        if missing or not wanted:
            what = f"{len(missing)} of its tasks, such as {missing[0]}," if missing else "tasks"
            hint = " Encrypted archives of tasks are not read." if list(exported.path.glob("*.zip")) else ""
            raise Refused(f"{exported} has not {what} as folders.{hint}")
        for name in wanted:
            yield folders[name], f"{exported}/{name}"

    def _check_clones(self, urls: set[str]) -> None:
        """All that are missing at once."""
        missing = sorted(url for url in urls if self._found(url) is None)
        if missing:
            wanted = "; ".join(f"git clone {url} {self.mirrors / _names(url)[0]}" for url in missing)
            raise Refused(f"{self.shown} needs repositories that are not below {self.mirrors}: {wanted}.")

    def _clone(self, git_url: str) -> Path:
        found = self._found(git_url)
        assert found is not None
        return found

    def _found(self, git_url: str) -> Path | None:
        if "://" not in git_url and Path(git_url).expanduser().is_dir():
            return Path(git_url).expanduser()
        candidates = (self.mirrors / name for name in _names(git_url))
        return next((path for path in candidates if path.is_dir()), None)


def open_registry(named: str, mirrors: str = "") -> Registry:
    """A file, the folder of one, or a repository, bare too. Without `mirrors` clones are beside the registry.

    Raises Refused.
    """
    path = Path(named).expanduser()
    if path.is_file():
        path, content = path.parent, _read(path)
        shown = named
    elif (path / REGISTRY).is_file():
        content, shown = _read(path / REGISTRY), str(path / REGISTRY)
    elif path.is_dir():
        content, shown = read_file(named, "", REGISTRY), f"{named}:{REGISTRY}"
    else:
        raise Refused(f"There is no registry {named}: name a {REGISTRY}, or a clone that has one.")
    try:
        datasets = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{shown} is not JSON.") from error
    if not isinstance(datasets, list) or not all(isinstance(each, dict) for each in datasets):
        raise Refused(f"{shown} must be a list of data sets.")
    beside = path.resolve().parent
    return Registry(shown, path, Path(mirrors).expanduser() if mirrors else beside, datasets)


def _task(fields: Mapping[str, Any]) -> RegisteredTask:
    revision = str(fields.get("git_commit_id") or "")
    path = str(fields["path"])
    return RegisteredTask(
        name=str(fields.get("name") or Path(path).name),
        path=path,
        git_url=str(fields.get("git_url") or ""),
        revision="" if revision.lower() == _HEAD else revision,
    )


def _names(git_url: str) -> Sequence[str]:
    """Where a clone may lie below the mirrors: by owner and name, or by name."""
    # git@host:owner/name has no scheme.
    path = urlsplit(git_url).path if "://" in git_url else git_url.rpartition(":")[2]
    parts = [
        part for part in path.removesuffix("/").removesuffix(".git").split("/") if part not in ("", "..")
    ]
    whole, name = "/".join(parts[-2:]), parts[-1] if parts else ""
    return (whole, f"{whole}.git", name, f"{name}.git")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from error


def _at_most(names: Sequence[str] | Mapping[str, Any], prefix: str = "", count: int = 10) -> str:
    shown = [f"{prefix}{name}" for name in list(names)[:count]]
    return ", ".join([*shown, *(["…"] if len(names) > count else [])])
