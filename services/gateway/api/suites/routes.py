"""Suites over HTTP: list, bring one's own, look at what a model would be asked, delete a version."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.requests import Request

from proctor.v1 import suite_service_pb2 as suite_pb2
from services.common.errors import ErrorKind, RemoteError
from services.gateway.api.suites.schemas import (
    NewSuite,
    SampleShown,
    SuiteAdded,
    SuiteList,
    SuiteMessage,
    sample_shown,
    suite_fault,
    suite_listed,
)
from services.gateway.auth.identity import Identity
from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.gateway_errors import (
    NoSuchVersion,
    NotSuiteText,
    SuiteFault,
    SuiteRefused,
)
from services.gateway.errors.http_problem import Described, problems
from services.gateway.paths import SUITES

_INT32_MAX = 2**31 - 1
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})
_IN_PATH = frozenset({"UNKNOWN_SUITE", "UNKNOWN_TASK"})
# Two kinds of body are more than FastAPI derives from a signature.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewSuite.model_json_schema()},
            "application/yaml": {"schema": {"type": "string", "description": "The YAML file as it is"}},
        },
    }
}

_KNOWN: Described = {200: {"model": SuiteAdded, "description": "Known, or only checked"}}

Version = Annotated[int, Path(ge=1, le=_INT32_MAX)]
Row = Annotated[int, Path(ge=0, le=_INT32_MAX, description="From 0")]
Shots = Annotated[int | None, Query(ge=0, le=_INT32_MAX, description="Examples in the prompt")]


async def suite_document(
    request: Request,
    file_name: Annotated[str, Query(max_length=255, description="What a YAML body is called")] = "",
) -> suite_pb2.SuiteDocument:
    body = await request.body()
    if _media_type(request) in _YAML:
        return suite_pb2.SuiteDocument(text=_decoded(body), file_name=file_name)
    try:
        return NewSuite.model_validate_json(body).to_document()
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(faults) from error


class SuiteApi:
    """The handlers, with what they ask."""

    def __init__(self, scheduler: SchedulerBackend, identity: Identity) -> None:
        self._scheduler = scheduler
        self._identity = identity

    def router(self) -> APIRouter:
        router = APIRouter(prefix=SUITES, tags=["suites"])
        router.get("", responses=problems(503), summary="List suites, broken ones with what is wrong")(
            self.list_suites
        )
        router.post(
            "",
            status_code=201,
            responses=_KNOWN | problems(413, 422, 503),
            openapi_extra=_BODY,
            summary="Bring a suite of your own",
        )(self.add)
        router.get(
            "/{suite}/tasks/{task}/samples/{row}",
            responses=problems(404, 422, 503),
            summary="What a model would be asked",
        )(self.show)
        router.delete(
            "/{suite}/versions/{version}",
            responses=problems(404, 409, 422, 503),
            summary="Delete a version that no run used",
        )(self.delete)
        return router

    async def list_suites(self) -> SuiteList:
        return SuiteList(suites=[suite_listed(suite) for suite in await self._scheduler.list_suites()])

    async def add(
        self,
        request: Request,
        response: Response,
        document: Annotated[suite_pb2.SuiteDocument, Depends(suite_document)],
        *,
        dry_run: Annotated[bool, Query(description="Check only")] = False,
    ) -> SuiteAdded:
        if dry_run:
            response.status_code = 200
            return await self._checked(document)
        added = await self._added(
            suite_pb2.AddSuiteRequest(document=document, user=await self._identity.user(request))
        )
        response.status_code = 200 if added.is_known else 201
        return SuiteAdded(suite=suite_listed(added.suite), is_known=added.is_known)

    async def show(self, suite: str, task: str, row: Row, num_fewshot: Shots = None) -> SampleShown:
        request = suite_pb2.ShowSampleRequest(suite=suite, task=task, row=row, num_fewshot=num_fewshot)
        with _named_in_path():
            return sample_shown(request, await self._scheduler.show_sample(request))

    async def delete(self, suite: str, version: Version) -> SuiteMessage:
        try:
            await self._scheduler.delete_suite(suite, version)
        except RemoteError as error:
            if error.reason != "UNKNOWN_SUITE":
                raise
            raise NoSuchVersion(suite=suite, version=version) from error
        return SuiteMessage(message=f"Version {version} of suite {suite} deleted")

    async def _checked(self, document: suite_pb2.SuiteDocument) -> SuiteAdded:
        checked = await self._scheduler.check_suite(document)
        if checked.problems:
            raise SuiteRefused([suite_fault(problem) for problem in checked.problems])
        return SuiteAdded(suite=suite_listed(checked.suite), is_known=None)

    async def _added(self, request: suite_pb2.AddSuiteRequest) -> suite_pb2.AddSuiteResponse:
        try:
            return await self._scheduler.add_suite(request)
        except RemoteError as error:
            if error.reason != "INVALID_SUITE_FILE":
                raise
            # A refusal names the first fault; the check knows all.
            checked = await self._scheduler.check_suite(request.document)
            faults = [suite_fault(problem) for problem in checked.problems]
            raise SuiteRefused(faults or [SuiteFault("", 0, "", error.message)]) from error


@contextmanager
def _named_in_path() -> Iterator[None]:
    """What a path names and does not exist is not found, where in a body it would be a bad request."""
    try:
        yield
    except RemoteError as error:
        if error.reason in _IN_PATH:
            raise RemoteError(
                ErrorKind.NOT_FOUND,
                error.reason,
                error.message,
                {name: str(value) for name, value in error.facts.items()},
            ) from error
        raise


def _media_type(request: Request) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise NotSuiteText from error
