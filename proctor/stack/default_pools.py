"""Which pools a stack has when nobody says: what this machine and this environment can serve."""

from collections.abc import Mapping
from pathlib import Path

from proctor.stack.remote_providers import REMOTE_PROVIDERS, remote_pool
from proctor.stack.stack_options import Pool, ServedModel, VllmPool, starter_model_dir
from proctor.stack.vllm_python import find_vllm_python

STARTER_MODEL = "vllm/starter"


def default_pools(environ: Mapping[str, str], current: Path) -> tuple[Pool, ...]:
    """vLLM with the starter model where both are there; a provider where its server or key is named."""
    return (*_local_pools(environ, current), *_remote_pools(environ))


def _local_pools(environ: Mapping[str, str], current: Path) -> tuple[Pool, ...]:
    model, python = starter_model_dir(environ), find_vllm_python(environ, current)
    if python is None or not model.is_dir():
        return ()
    return (VllmPool((ServedModel(STARTER_MODEL, str(model)),), python=python),)


def _remote_pools(environ: Mapping[str, str]) -> tuple[Pool, ...]:
    told = [provider for provider in REMOTE_PROVIDERS.values() if provider.is_told_of(environ)]
    return tuple(
        remote_pool(provider, base_url, environ)
        for provider in told
        if (base_url := provider.address(environ))
    )
