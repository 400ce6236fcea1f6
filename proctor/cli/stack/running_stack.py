"""Whether the stack that stands would examine what was asked for, or something else of the same name."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from proctor.stack.errors import StackError
from proctor.stack.options import Pool, RemotePool, VllmPool, starter_model_dir
from proctor.stack.pools.file import read_pools_file
from proctor.stack.pools.models import STARTER_MODEL, ChosenModel, base_url_of
from proctor.stack.state import StackState


class StandingStackDiffers(StackError):
    """The stack that stands was started for something else of the same name."""

    exit_code = 2

    def __init__(self, what: str, wanted: str, standing: str) -> None:
        super().__init__(
            f"{what} is {wanted or 'not set'} here, but {standing or 'not set'} for the stack that runs: "
            "stop it with `make down`, or set PROCTOR_STATE_DIR to another folder."
        )


def refuse_what_differs(stack: StackState, model: ChosenModel, environ: Mapping[str, str]) -> None:
    """A name that the stack does not have at all is left to its scheduler, which knows all workers."""
    pools = read_pools_file(Path(stack.environment["PROCTOR_POOLS_FILE"]))
    if model.source:
        wanted = str(starter_model_dir(environ)) if model.source == STARTER_MODEL else model.source
        _compare(model.name, wanted, _sources(pools, model.name))
    else:
        _compare(model.name, base_url_of(model.provider, environ), _servers(pools, model.provider))
    data, standing = environ.get("PROCTOR_DATA_DIR", ""), stack.environment.get("PROCTOR_DATA_DIR", "")
    if _place(data and str(Path(data).absolute())) != _place(standing):
        raise StandingStackDiffers("PROCTOR_DATA_DIR", data, standing)


def _compare(what: str, wanted: str, standing: Iterable[str]) -> None:
    others = list(standing)
    if others and _place(wanted) not in map(_place, others):
        raise StandingStackDiffers(what, wanted, others[0])


def _sources(pools: Iterable[Pool], name: str) -> list[str]:
    served = [model for pool in pools if isinstance(pool, VllmPool) for model in pool.models]
    return [model.path for model in served if model.name == name]


def _servers(pools: Iterable[Pool], provider: str) -> list[str]:
    remote = [pool for pool in pools if isinstance(pool, RemotePool)]
    return [pool.base_url for pool in remote if pool.provider == provider]


def _place(text: str) -> str:
    """Equal for two ways to write one folder; hub ids and addresses stay what they are."""
    is_folder = text.startswith(("/", ".", "~"))
    return str(Path(text).expanduser().resolve()) if is_folder else text.rstrip("/")
