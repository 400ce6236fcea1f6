"""Addresses of the former history, which users kept: the list of runs has what it showed."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from services.gateway.pages.addresses import address
from services.gateway.pages.page import PageOf

_Text = Annotated[str, Query(max_length=512)]

router = APIRouter(include_in_schema=False)


@router.get("/history")
async def history(  # noqa: PLR0917  # the filters that it had
    page: PageOf,
    model: _Text = "",
    suite: _Text = "",
    kind: _Text = "",
    state: _Text = "",
    metric: _Text = "",
) -> Response:
    filters = {"model": model, "suite": suite, "kind": kind, "state": state, "metric": metric}
    return page.go(address("/runs", filters))
