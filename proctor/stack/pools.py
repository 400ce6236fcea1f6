"""Models and providers as people name them, and the pools of the local stack that serve them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.stack.errors import ModelUnusable
from proctor.stack.options import remote_pool, vllm_pool
from proctor.stack.state import write_private
from proctor.stack.supervision.child import Report
from proctor.stack.vllm.environment import find_vllm_python
from proctor.stack.vllm.starter_model import ensure_starter_model
from proctor.values.names.model_name import provider_of, split_model
from proctor.values.providers.base_urls import is_http_address
from proctor.values.providers.pool import ConstrainedField, Pool, PoolModel, Provider
from proctor.values.providers.pools_file import PoolsFile, format_pools
from proctor.values.providers.remote_providers import REMOTE_PROVIDERS, RemoteProvider

STARTER_MODEL = "vllm/starter"
# What a model that is loaded here has where a remote one has its provider.
_LOADED_HERE = "vllm"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def pool_of(provider: RemoteProvider, base_url: str, environ: Mapping[str, str]) -> Pool:
    """`openai` may be any server, so only OpenAI's own is known to hold answers to a schema."""
    can_constrain = provider.takes_schema and not _is_any_server(provider, base_url)
    field = ConstrainedField.RESPONSE_FORMAT if can_constrain else None
    called = Provider(provider.name, base_url, provider.api_key_env(environ), field)
    return remote_pool(called, name=f"remote-{provider.name}", engine=provider.engine)


def _is_any_server(provider: RemoteProvider, base_url: str) -> bool:
    return provider.name == "openai" and base_url.rstrip("/") != provider.base_url


def asks_any_server(model: "ChosenModel", environ: Mapping[str, str]) -> bool:
    """Whether the model's server is known by its protocol only, OpenAI's."""
    provider = None if model.source else REMOTE_PROVIDERS.get(model.provider)
    return provider is not None and _is_any_server(provider, base_url_of(provider.name, environ))


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """`name` is what a run calls it; `source` is a folder or hub id, empty for a remote one."""

    name: str
    source: str = ""

    @property
    def provider(self) -> str:
        return provider_of(self.name)

    @property
    def is_of_hub(self) -> bool:
        return bool(_HUB_ID.fullmatch(self.source)) and self.source != STARTER_MODEL


def choose_model(given: str) -> ChosenModel:
    """`vllm/starter`, `openai/NAME`, a local folder, or a hub id after `vllm/`.

    A name of another beginning is refused: a provider that is written wrong would pass for a hub id.
    """
    provider, rest = split_model(given)
    if given == STARTER_MODEL:
        return ChosenModel(given, STARTER_MODEL)
    if given.startswith((".", "/", "~")) or Path(given).is_dir():
        return _local_folder(Path(given).expanduser().absolute())
    if provider in REMOTE_PROVIDERS and rest:
        return ChosenModel(given)
    if provider == _LOADED_HERE and _HUB_ID.fullmatch(rest):
        return ChosenModel(given, rest)
    raise ModelUnusable(problem=_why_none(given))


def _why_none(given: str) -> str:
    provider = provider_of(given)
    if provider == _LOADED_HERE:
        ways = f"write {STARTER_MODEL}, or {_LOADED_HERE}/OWNER/NAME for one of the hub"
        return f"{given} is no model that can be loaded here: {ways}."
    if provider in REMOTE_PROVIDERS:
        return f"{given} names no model: write {provider}/NAME."
    known = ", ".join(sorted((*REMOTE_PROVIDERS, _LOADED_HERE)))
    local = (
        f"; for the hub write {_LOADED_HERE}/{given}, for a folder ./{given}"
        if _HUB_ID.fullmatch(given)
        else ""
    )
    return f"{given} has no known provider: write PROVIDER/MODEL, where the providers are {known}{local}."


def pools_for(models: Sequence[ChosenModel], environ: Mapping[str, str], report: Report) -> tuple[Pool, ...]:
    """One vLLM pool for what is loaded here, one remote pool per provider."""
    local = _differently_named([model for model in models if model.source])
    providers = dict.fromkeys(model.provider for model in models if not model.source)
    remote = tuple(_remote_pool(provider, environ) for provider in providers)
    return (_vllm_pool(local, environ, report), *remote) if local else remote


def default_pools(environ: Mapping[str, str], report: Report) -> tuple[Pool, ...]:
    """One pool for each provider that the environment sets up, and the starter model where vLLM is installed.

    Where neither is there, the starter model is asked for, so that the refusal says what to do.
    """
    remote = tuple(
        _remote_pool(provider.name, environ)
        for provider in REMOTE_PROVIDERS.values()
        if provider.is_configured(environ) and provider.address(environ)
    )
    if remote and find_vllm_python(environ) is None:
        return remote
    return (*pools_for([choose_model(STARTER_MODEL)], environ, report), *remote)


def _differently_named(models: Sequence[ChosenModel]) -> list[ChosenModel]:
    by_name: dict[str, ChosenModel] = {}
    for model in models:
        other = by_name.setdefault(model.name, model)
        if other != model:
            both = f"{other.source} and {model.source} would both be called {model.name}"
            raise ModelUnusable(problem=f"{both}: rename one of them.")
    return list(by_name.values())


def _vllm_pool(models: Sequence[ChosenModel], environ: Mapping[str, str], report: Report) -> Pool:
    python = find_vllm_python(environ)
    if python is None:
        raise ModelUnusable(
            problem="vLLM's environment is missing: `proctor vllm install` makes it. Without it a provider's "
            "model can be evaluated, such as --model openai/gpt-4o-mini."
        )
    served = tuple(_served(model, python, environ, report) for model in models)
    return vllm_pool(*served)


def _served(model: ChosenModel, python: Path, environ: Mapping[str, str], report: Report) -> PoolModel:
    if model.source != STARTER_MODEL:
        return PoolModel(model.name, model.source)
    folder = ensure_starter_model(python, environ, report)
    # The starter suite needs less; the 2,048 that the model can take would reserve twice the cache.
    return PoolModel(model.name, str(folder), {"max_model_len": 1024})


def _local_folder(folder: Path) -> ChosenModel:
    if not folder.is_dir():
        raise ModelUnusable(problem=f"There is no model folder {folder}.")
    if not (folder / "config.json").is_file():
        raise ModelUnusable(problem=f"{folder} is not a model folder: it has no config.json.")
    return ChosenModel(f"vllm/{folder.name}", str(folder))


def _remote_pool(provider: str, environ: Mapping[str, str]) -> Pool:
    known, base_url = REMOTE_PROVIDERS[provider], base_url_of(provider, environ)
    if known.lacks_key(environ):
        raise ModelUnusable(
            problem=f"{provider} needs a key: {known.key_advice}, or set {known.url_variable} to a server of "
            "your own."
        )
    return pool_of(known, base_url, environ)


def base_url_of(provider: str, environ: Mapping[str, str]) -> str:
    """The address of a provider's server; ModelUnusable when none is known, or when it is none."""
    known = REMOTE_PROVIDERS[provider]
    variable, base_url = known.url_variable, known.address(environ)
    if not base_url:
        raise ModelUnusable(
            problem=f"Set {variable} to the address of the server, such as http://127.0.0.1:8000/v1."
        )
    if not is_http_address(base_url):
        raise ModelUnusable(
            problem=f"{variable} cannot be {base_url!r}: write it as {known.base_url or 'http://HOST:PORT/v1'}."
        )
    return base_url


def aliases_of(given: Sequence[str], pools: Sequence[Pool]) -> dict[str, str]:
    """Aliases, each as NAME=PROVIDER/MODEL, for a model that one of the pools serves."""
    aliases: dict[str, str] = {}
    for text in given:
        name, _, model = text.partition("=")
        if not name.strip() or not model:
            raise ModelUnusable(problem=f"{text} is not an alias: write it as NAME=PROVIDER/MODEL.")
        if not any(pool.serves(model) for pool in pools):
            raise ModelUnusable(
                problem=f"{name} cannot stand for {model}, which is not served here: see --model."
            )
        if aliases.setdefault(name.strip(), model) != model:
            raise ModelUnusable(
                problem=f"{name} would stand for {aliases[name]} and for {model}: give it once."
            )
    return aliases


def write_pools_file(path: Path, file: PoolsFile) -> Path:
    """Private, because the address of a provider may hold a password."""
    write_private(path, format_pools(file))
    return path
