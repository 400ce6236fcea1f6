"""Lists the models of the worker's engine, within a time limit and at a bounded length."""

import asyncio
from dataclasses import dataclass
from itertools import islice

from proctor.values.providers.models import ModelInfo
from services.worker.engines.errors import EngineFailure
from services.worker.engines.ports import Engine

# So many models with names of this length stay below the 8 MiB of a NATS message.
_MAX_MODELS = 2000
_MAX_NAME_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class ModelListing:
    """`problem` says in one sentence why models are missing; empty when all are listed."""

    models: tuple[ModelInfo, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ListEngineModels:
    """`has_key`: whether the worker has a key of its provider."""

    engine: Engine
    limit_seconds: float
    has_key: bool = False

    async def list_models(self) -> ModelListing:
        try:
            async with asyncio.timeout(self.limit_seconds):
                models = await self.engine.list_models()
        except TimeoutError:
            return ModelListing(problem=f"The list of models took longer than {self.limit_seconds:g} s.")
        except EngineFailure as failure:
            return ModelListing(problem=str(failure))
        return _bounded(models)


def _bounded(models: tuple[ModelInfo, ...]) -> ModelListing:
    """The list has to fit a message, and its names must be safe to print, whatever a server lists."""
    valid = (
        model for model in models if len(model.model) <= _MAX_NAME_CHARACTERS and model.model.isprintable()
    )
    kept = tuple(islice(valid, _MAX_MODELS))
    left_out = len(models) - len(kept)
    problem = f"{left_out} of {len(models)} models are left out of the list." if left_out else ""
    return ModelListing(kept, problem)
