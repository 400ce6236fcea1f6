"""Rejects query parameters that a path does not have, as bodies reject unknown keys."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute


async def known_parameters(request: Request) -> None:
    """A dependency of every path."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [parameter.alias for parameter in get_flat_dependant(route.dependant).query_params]
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        problem = f"there is no such parameter; there are: {', '.join(known) or 'none'}"
        raise RequestValidationError([{"loc": ("query", name), "msg": problem} for name in unknown])
