"""Volumes of rendered pods as folders: each container sees its mounts below a root of its own."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Stores:
    """Volumes and variables of pods: config maps and secrets as text, claims as shared folders."""

    config_maps: Mapping[str, Mapping[str, str]]
    secrets: Mapping[str, Mapping[str, str]]
    claims: Path

    @classmethod
    def of(
        cls, objects: list[dict[str, Any]], given: Mapping[str, Mapping[str, str]], claims: Path
    ) -> "Stores":
        """`given` are secrets that an operator has made; they come before those of the chart."""
        maps = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
        made = {
            each["metadata"]["name"]: {
                key: base64.b64decode(value).decode() for key, value in each["data"].items()
            }
            for each in objects
            if each["kind"] == "Secret"
        }
        merged = {name: {**made.get(name, {}), **given.get(name, {})} for name in {*made, *given}}
        return cls(maps, merged, claims)


def make_volumes(pod: Document, stores: Stores, folder: Path) -> dict[str, Path]:
    """A folder for each volume of the pod, by its name."""
    return {
        volume["name"]: _made(volume, stores, folder / "volumes" / volume["name"])
        for volume in pod.get("volumes", ())
    }


def _made(volume: Document, stores: Stores, folder: Path) -> Path:
    if "persistentVolumeClaim" in volume:
        folder = stores.claims / volume["persistentVolumeClaim"]["claimName"]
    folder.mkdir(parents=True, exist_ok=True)
    if "configMap" in volume:
        _write(folder, stores.config_maps[volume["configMap"]["name"]])
    elif "secret" in volume:
        held = stores.secrets[volume["secret"]["secretName"]]
        items = volume["secret"].get("items") or [{"key": key, "path": key} for key in held]
        _write(folder, {item["path"]: held[item["key"]] for item in items})
    elif "emptyDir" not in volume and "persistentVolumeClaim" not in volume:
        raise AssertionError(f"a volume of a kind that no pod of the chart has: {volume}")
    return folder


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def mount(container: Document, volumes: Mapping[str, Path], root: Path) -> dict[str, Path]:
    """Places below `root` that stand for the paths of the mounts."""
    folders = {}
    for each in sorted(container.get("volumeMounts", ()), key=lambda mounted: len(mounted["mountPath"])):
        folder = root / each["mountPath"].lstrip("/")
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not folder.exists():
            folder.symlink_to(volumes[each["name"]] / each.get("subPath", ""))
        folders[each["mountPath"]] = folder
    return folders
