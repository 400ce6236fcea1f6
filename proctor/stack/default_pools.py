"""Which pools a stack has when nobody says: what this machine and this environment can serve."""

from collections.abc import Mapping
from pathlib import Path

from proctor.stack.stack_options import Pool, RemotePool, ServedModel, VllmPool, starter_model_dir
from proctor.stack.vllm_python import find_vllm_python

STARTER_MODEL = "vllm/starter"
OPENAI_BASE_URL = "https://api.openai.com/v1"


def default_pools(environ: Mapping[str, str], current: Path) -> tuple[Pool, ...]:
    """vLLM with the starter model where both are there; OpenAI's protocol where a server or key is named."""
    return (*_local_pools(environ, current), *_remote_pools(environ))


def _local_pools(environ: Mapping[str, str], current: Path) -> tuple[Pool, ...]:
    model, python = starter_model_dir(environ), find_vllm_python(environ, current)
    if python is None or not model.is_dir():
        return ()
    return (VllmPool((ServedModel(STARTER_MODEL, str(model)),), python=python),)


def _remote_pools(environ: Mapping[str, str]) -> tuple[Pool, ...]:
    base_url = environ.get("OPENAI_BASE_URL")
    if base_url is None and "OPENAI_API_KEY" not in environ:
        return ()
    return (RemotePool(base_url or OPENAI_BASE_URL),)
