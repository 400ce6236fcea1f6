"""Models over HTTP: what pools and their providers tell of them now."""

from typing import Annotated

from fastapi import APIRouter, Query

from services.gateway.api.models.schemas import AdminModels, ModelsShown, admin_models, models_shown
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.http_problem import problems
from services.gateway.paths import ADMIN, MODELS

Provider = Annotated[
    str, Query(max_length=128, description="Only this one; it has to be a provider of a pool")
]


class ModelApi:
    """The handlers, with what they ask."""

    def __init__(self, scheduler: SchedulerBackend) -> None:
        self._scheduler = scheduler

    def router(self) -> APIRouter:
        router = APIRouter(tags=["models"])
        router.get(
            MODELS,
            responses=problems(400, 422, 503),
            summary="List models live, with the pools that do not tell theirs",
        )(self.list_models)
        router.get(
            f"{ADMIN}/models", responses=problems(503), summary="List models with size and memory needed"
        )(self.list_admin_models)
        return router

    async def list_models(self, provider: Provider = "") -> ModelsShown:
        return models_shown(await self._scheduler.list_models(provider))

    async def list_admin_models(self) -> AdminModels:
        return admin_models(await self._scheduler.list_models())
