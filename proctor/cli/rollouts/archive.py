"""Packs the task folders of an order, and their overrides, for an upload; and the order that names them."""

import gzip
import io
import json
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.cli.rollouts.config import RolloutsConfig, TaskEntry
from proctor.client.errors import Refused
from proctor.v1 import rollout_service_pb2
from proctor.wire.well_known import unless_empty

_OWN = "overrides.json"


@dataclass(frozen=True, slots=True)
class PackedTasks:
    """A .tar.gz of folders, and overrides by their names as JSON texts."""

    archive: bytes
    overrides_json: Mapping[str, str]


def packed(entries: Sequence[TaskEntry]) -> PackedTasks:
    """Raises Refused for folders that cannot be read."""
    names = _names([entry.folder for entry in entries])
    overrides = {name: json.dumps(_overrides(entry)) for name, entry in zip(names, entries, strict=True)}
    return PackedTasks(_archive(names, entries), overrides)


def order_of(
    config: RolloutsConfig,
    models: Sequence[str],
    tasks: rollout_service_pb2.UploadTasksResponse,
    parallel_group: str,
) -> rollout_service_pb2.SubmitRolloutsRequest:
    """Orders with the same `parallel_group` share the configuration's `parallel`."""
    rollouts_of = config.model_rollouts
    usual = max(rollouts_of[models[0]])
    return rollout_service_pb2.SubmitRolloutsRequest(
        suite=config.name,
        tasks_digest=tasks.tasks_digest,
        agent=config.agent,
        models=models,
        rollouts=usual,
        model_tasks={
            model: _model_tasks(tasks.task_ids, rollouts_of[model])
            for model in models
            if set(rollouts_of[model]) != {usual}
        },
        project_id=config.project_id,
        params=unless_empty(config.params),
        max_cost=config.max_cost,
        request_id=str(uuid.uuid4()),
        parallel=config.parallel or None,
        parallel_group=parallel_group,
    )


def _model_tasks(task_ids: Sequence[str], rollouts: Sequence[int]) -> rollout_service_pb2.ModelTasks:
    ordered = {name: each for name, each in zip(task_ids, rollouts, strict=True) if each}
    return rollout_service_pb2.ModelTasks(rollouts=ordered)


def _names(folders: Sequence[Path]) -> list[str]:
    """Names of their folders, each once. They have the order of the entries, as the suite's tasks.

    What the folders are called where they lie is said beside them: no task has its name from the order.
    """
    width = len(str(len(folders)))
    return [f"{number:0{width}}-{folder.resolve().name}" for number, folder in enumerate(folders, 1)]


def _overrides(entry: TaskEntry) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if entry.overrides is not None:
        try:
            values = json.loads(entry.overrides.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise Refused(f"{entry.overrides} cannot be read as JSON.") from error
        if not isinstance(values, dict):
            raise Refused(f"{entry.overrides} must hold a JSON object.")
    if entry.variables:
        values["environment_variables"] = {**values.get("environment_variables", {}), **entry.variables}
    if entry.image:
        values["image"] = entry.image
    return {**values, "folder": entry.folder.resolve().name}


def _archive(names: Sequence[str], entries: Sequence[TaskEntry]) -> bytes:
    """Links are packed as links: the scheduler refuses them by name."""
    written = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=written, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name, entry in zip(names, entries, strict=True):
            if not entry.folder.is_dir():
                raise Refused(f"{entry.folder} is not a folder.")
            for path in sorted(entry.folder.rglob("*")):
                inner = path.relative_to(entry.folder)
                if ".git" in inner.parts or (str(inner) == _OWN and not entry.keeps_own):
                    continue
                try:
                    tar.add(path, f"{name}/{inner.as_posix()}", recursive=False)
                except OSError as error:
                    raise Refused(f"{path} cannot be read: {error.strerror}.") from error
    return written.getvalue()
