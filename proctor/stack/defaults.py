"""Where a stack and its clients meet unless told otherwise: the gateway's addresses, and folders."""

import os
from collections.abc import Mapping
from pathlib import Path

DEFAULT_GATEWAY_HTTP = "127.0.0.1:8080"
DEFAULT_GATEWAY_GRPC = "127.0.0.1:8081"


def default_state_dir(environ: Mapping[str, str], current: Path) -> Path:
    """PROCTOR_STATE_DIR, else `.proctor` of the project that `current` lies in."""
    given = environ.get("PROCTOR_STATE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    return project_dir(current) / ".proctor"


def project_dir(current: Path) -> Path:
    """Found upwards, as git does: the nearest `.proctor`, else repository or pyproject, else here.

    A `.proctor` that another user put above us, in /tmp say, is passed over.
    """
    here = current.absolute()
    folders = (here, *here.parents)
    stacks = (folder for folder in folders if is_own(folder / ".proctor"))
    projects = (
        folder for folder in folders if (folder / ".git").exists() or (folder / "pyproject.toml").exists()
    )
    return next(stacks, next(projects, here))


def is_own(path: Path) -> bool:
    """Whether it exists and belongs to us."""
    return path.exists() and path.stat().st_uid == os.geteuid()


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """PROCTOR_CACHE_DIR, else the user's cache folder: what can be rebuilt (models), shared by all stacks."""
    given = environ.get("PROCTOR_CACHE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    caches = environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "proctor"


def starter_model_dir(environ: Mapping[str, str]) -> Path:
    return default_cache_dir(environ) / "starter-model"
