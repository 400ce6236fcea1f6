"""Types of parameters that several APIs read, and the check for unknown ones."""

import uuid
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AfterValidator

from services.gateway.errors.api_errors import run_id_of
from services.gateway.errors.gateway_errors import RunNotFound

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def _utf8(text: str) -> str:
    """JSON can hold half a character (a lone surrogate), which protobuf cannot."""
    text.encode()  # raises UnicodeEncodeError, a ValueError
    return text


Text = Annotated[str, AfterValidator(_utf8)]


def _job_id(job_id: Annotated[str, Path(description="UUID")]) -> str:
    try:
        return str(uuid.UUID(job_id))
    except ValueError as error:
        raise RunNotFound(run_id=job_id) from error


def _benchmark_run_id(benchmark_id: Annotated[str, Path(description='"bm_…"', max_length=255)]) -> str:
    return run_id_of(benchmark_id)


JobId = Annotated[str, Depends(_job_id)]
BenchmarkRunId = Annotated[str, Depends(_benchmark_run_id)]


async def known_parameters(request: Request) -> None:
    """A dependency of every path."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [parameter.alias for parameter in get_flat_dependant(route.dependant).query_params]
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        problem = f"there is no such parameter; there are: {', '.join(known) or 'none'}"
        raise RequestValidationError([{"loc": ("query", name), "msg": problem} for name in unknown])
