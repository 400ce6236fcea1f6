"""What a local stack is asked to be: its folder, addresses, pools and what runs as its services."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

DEFAULT_GATEWAY_HTTP = "127.0.0.1:8080"
DEFAULT_GATEWAY_GRPC = "127.0.0.1:8081"

SERVICE_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "gateway": "services.gateway",
        "scheduler": "services.scheduler",
        "results": "services.results",
        "worker": "services.worker",
    }
)
# Environment variables of the command line and of the stack: default and meaning, for the reference.
VARIABLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "PROCTOR_STATE_DIR": ("`.proctor` of the project", "Folder of the stack's data, logs and state."),
        "PROCTOR_CACHE_DIR": ("`~/.cache/proctor`", "Folder of what can be rebuilt: the starter model."),
        "PROCTOR_VLLM_PYTHON": ("`.venv-vllm/bin/python`", "Python of the environment that has vLLM."),
        "PROCTOR_GATEWAY": ("the local stack's", "gRPC address of the gateway that commands call."),
        "PROCTOR_USER": ("`local`", "Name of the user who orders, for limits per user."),
    }
)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a vLLM pool may load: its folder or hub id, or a LoRA adapter and the `base` under it."""

    name: str
    path: str = ""
    engine_args: Mapping[str, object] = field(default_factory=dict)
    lora: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True)
class VllmPool:
    """A pool whose worker runs vLLM in its own process, by the python of vLLM's environment."""

    models: tuple[ServedModel, ...]
    name: str = "local"
    concurrency: int = 256
    python: Path | None = None


@dataclass(frozen=True, slots=True)
class RemotePool:
    """A pool whose worker asks a server by `engine`: the OpenAI protocol, or a provider's own API.

    `can`: the ways to score choices that the server has, where it is known; `constrained_field`: by what it
    is told to say nothing but them.
    """

    base_url: str
    name: str = "remote"
    concurrency: int = 64
    engine: str = "openai"
    provider: str = "openai"
    api_key_env: str = "OPENAI_API_KEY"
    can: tuple[str, ...] = ()
    constrained_field: str = ""


Pool = VllmPool | RemotePool


@dataclass(frozen=True, slots=True)
class StackOptions:
    """`modules` names what runs as each service; without any, only Postgres and NATS are started.

    `aliases` are other names of models that the pools serve: name to "provider/name".
    """

    state_dir: Path
    pools: tuple[Pool, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    gateway_http_address: str = DEFAULT_GATEWAY_HTTP
    gateway_grpc_address: str = DEFAULT_GATEWAY_GRPC
    modules: Mapping[str, str] = field(default_factory=lambda: SERVICE_MODULES)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: Path = Path(sys.executable)


def options_from_environment(environ: Mapping[str, str], pools: tuple[Pool, ...] = ()) -> StackOptions:
    return StackOptions(
        state_dir=default_state_dir(environ, Path.cwd()),
        pools=pools,
        gateway_http_address=environ.get("PROCTOR_GATEWAY_HTTP_ADDRESS", DEFAULT_GATEWAY_HTTP),
        gateway_grpc_address=environ.get("PROCTOR_GATEWAY_GRPC_ADDRESS", DEFAULT_GATEWAY_GRPC),
        environment=dict(environ),
    )


def default_state_dir(environ: Mapping[str, str], current: Path) -> Path:
    """PROCTOR_STATE_DIR, else `.proctor` of the project that `current` lies in."""
    given = environ.get("PROCTOR_STATE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    return project_dir(current) / ".proctor"


def project_dir(current: Path) -> Path:
    """Found upwards, as git does: the nearest `.proctor`, else repository or pyproject, else here."""
    here = current.absolute()
    for marks in ((".proctor",), (".git", "pyproject.toml")):
        for folder in (here, *here.parents):
            if any((folder / mark).exists() for mark in marks):
                return folder
    return here


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """PROCTOR_CACHE_DIR, else the user's cache folder: what can be rebuilt (models), shared by all stacks."""
    given = environ.get("PROCTOR_CACHE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    caches = environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "proctor"


def starter_model_dir(environ: Mapping[str, str]) -> Path:
    return default_cache_dir(environ) / "starter-model"
