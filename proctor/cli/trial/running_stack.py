"""Whether a stack that runs already is the one that a trial asks for."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from proctor.stack.defaults import starter_model_dir
from proctor.stack.errors import RunningStackDiffers
from proctor.stack.pools import STARTER_MODEL, ChosenModel, base_url_of
from proctor.stack.state import StackState
from proctor.values.providers.pool import Pool
from proctor.values.providers.pools_file import parse_pools


def refuse_what_differs(stack: StackState, model: ChosenModel, environ: Mapping[str, str]) -> None:
    """Accepts a model that is in no pool of the stack: the scheduler decides, by the live workers."""
    pools = parse_pools(Path(stack.environment["PROCTOR_POOLS_FILE"]).read_text(encoding="utf-8")).pools
    if model.source:
        wanted = str(starter_model_dir(environ)) if model.source == STARTER_MODEL else model.source
        _compare(model.name, wanted, _sources(pools, model.name))
    else:
        _compare(model.name, base_url_of(model.provider, environ), _servers(pools, model.provider))
    data, running = environ.get("PROCTOR_DATA_DIR", ""), stack.environment.get("PROCTOR_DATA_DIR", "")
    if _normalized(data and str(Path(data).absolute())) != _normalized(running):
        unset = "not set"
        raise RunningStackDiffers(what="PROCTOR_DATA_DIR", wanted=data or unset, running=running or unset)


def _compare(what: str, wanted: str, running: Iterable[str]) -> None:
    others = list(running)
    if others and _normalized(wanted) not in map(_normalized, others):
        raise RunningStackDiffers(what=what, wanted=wanted, running=others[0])


def _sources(pools: Iterable[Pool], name: str) -> list[str]:
    return [model.path for pool in pools for model in pool.models if model.name == name]


def _servers(pools: Iterable[Pool], provider: str) -> list[str]:
    return [pool.base_url for pool in pools if pool.provider and pool.provider.name == provider]


def _normalized(text: str) -> str:
    """Equal for two spellings of one folder; hub ids and addresses are unchanged."""
    is_folder = text.startswith(("/", ".", "~"))
    return str(Path(text).expanduser().resolve()) if is_folder else text.rstrip("/")
