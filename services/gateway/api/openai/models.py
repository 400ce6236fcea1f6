"""Models in the form of the OpenAI protocol: those that a batch can use now."""

from typing import Annotated

from fastapi import APIRouter, Path

from proctor.v1.scheduler_service_pb2 import ListModelsRequest
from services.gateway.api.openai.schemas import ModelList, ModelObject
from services.gateway.backends.backends import Scheduler
from services.gateway.errors.gateway_errors import NoSuchModel
from services.gateway.errors.openai_errors import openai_problems
from services.gateway.http.fields import Text
from services.gateway.paths import OPENAI_MODELS

ModelId = Annotated[Text, Path(description="provider/name, or an alias of one")]


class OpenAIModelApi:
    """The handlers and their backend."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def router(self) -> APIRouter:
        router = APIRouter(tags=["openai"])
        router.get(OPENAI_MODELS, responses=openai_problems(503), summary="List models live")(
            self.list_models
        )
        # Names of models contain slashes.
        router.get(
            f"{OPENAI_MODELS}/{{model:path}}", responses=openai_problems(404, 503), summary="One model"
        )(self.get)
        return router

    async def list_models(self) -> ModelList:
        return ModelList(data=await self._models())

    async def get(self, model: ModelId) -> ModelObject:
        for listed in await self._models():
            if listed.id == model:
                return listed
        raise NoSuchModel(model=model)

    async def _models(self) -> list[ModelObject]:
        """Loadable models and their aliases. Several pools may serve one model."""
        listed = await self._scheduler.runs.ListModels(ListModelsRequest())
        broken = {model.model for model in listed.models if model.problem}
        named = {model.model: model.model for model in listed.models} | dict(sorted(listed.aliases.items()))
        return [
            ModelObject(id=name, created=0, owned_by=model.partition("/")[0])
            for name, model in named.items()
            if model not in broken
        ]
