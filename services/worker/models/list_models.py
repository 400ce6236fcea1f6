"""Asks the engine for its models, within a time: what is told of a pool while nothing is run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice

from services.worker.engines.engine import Engine, EngineFailure, ModelInfo

_MOST_MODELS = 2000
_LONGEST_NAME = 512


@dataclass(frozen=True, slots=True)
class ModelListing:
    """`problem` says in one sentence why models are missing; empty when all are there."""

    models: tuple[ModelInfo, ...] = ()
    problem: str = ""


class ModelLister:
    def __init__(self, engine: Engine, limit_seconds: float) -> None:
        self._engine = engine
        self._limit_seconds = limit_seconds

    async def list_models(self) -> ModelListing:
        try:
            async with asyncio.timeout(self._limit_seconds):
                told = await self._engine.list_models()
        except TimeoutError:
            return ModelListing(problem=f"The list of models took longer than {self._limit_seconds:g} s.")
        except EngineFailure as failure:
            return ModelListing(problem=str(failure))
        return _bounded(told)


def _bounded(told: tuple[ModelInfo, ...]) -> ModelListing:
    """An answer has to fit a message and harm no terminal, whatever a server lists."""
    fit = (model for model in told if len(model.name) <= _LONGEST_NAME and model.name.isprintable())
    models = tuple(islice(fit, _MOST_MODELS))
    left_out = len(told) - len(models)
    problem = f"{left_out} of {len(told)} models are left out of the list." if left_out else ""
    return ModelListing(models, problem)
