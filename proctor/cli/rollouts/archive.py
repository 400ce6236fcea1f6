"""Packs the task folders of an order, and their overrides, for the gateway."""

import gzip
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.cli.rollouts.config import OrderGroup, RolloutsConfig, TaskEntry
from proctor.client.errors import Refused
from proctor.v1 import rollout_service_pb2 as rollouts_pb2

_OWN = "overrides.json"


def order_of(config: RolloutsConfig, group: OrderGroup, request_id: str) -> rollouts_pb2.OrderRolloutsRequest:
    """Raises Refused for folders that cannot be read."""
    entries = group.entries
    names = _names([entry.folder for entry in entries])
    overrides = {
        name: json.dumps(values)
        for name, entry in zip(names, entries, strict=True)
        if (values := _overrides(entry))
    }
    return rollouts_pb2.OrderRolloutsRequest(
        name=config.name,
        tasks=_packed(names, entries),
        overrides_json=overrides,
        agent=config.agent,
        models=group.models,
        rollouts=group.rollouts,
        project_id=config.project_id,
        params=config.params if config.params.ListFields() else None,
        max_cost=config.max_cost,
        request_id=request_id,
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Names of their folders, each once. They have the order of the entries, as the suite's tasks."""
    width = len(str(len(folders)))
    return [f"{number:0{width}}-{folder.resolve().name}" for number, folder in enumerate(folders, 1)]


def _overrides(entry: TaskEntry) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if entry.overrides is not None:
        try:
            values = json.loads(entry.overrides.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refused(f"{entry.overrides} cannot be read as JSON.") from error
        if not isinstance(values, dict):
            raise Refused(f"{entry.overrides} must hold a JSON object.")
    if entry.variables:
        values["environment_variables"] = {**values.get("environment_variables", {}), **entry.variables}
    return values


def _packed(names: Sequence[str], entries: Sequence[TaskEntry]) -> bytes:
    """Links are packed as links: the scheduler refuses them by name."""
    written = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=written, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for name, entry in zip(names, entries, strict=True):
            if not entry.folder.is_dir():
                raise Refused(f"{entry.folder} is no folder.")
            for path in sorted(entry.folder.rglob("*")):
                inner = path.relative_to(entry.folder)
                if ".git" in inner.parts or (str(inner) == _OWN and not entry.keeps_own):
                    continue
                try:
                    tar.add(path, f"{name}/{inner.as_posix()}", recursive=False)
                except OSError as error:
                    raise Refused(f"{path} cannot be read: {error.strerror}.") from error
    return written.getvalue()
