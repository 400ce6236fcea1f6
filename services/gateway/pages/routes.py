"""All pages. Each is a topic with its routes, its view and its templates."""

from fastapi import APIRouter
from starlette.responses import RedirectResponse

from services.gateway.pages import appearance, assets, sign_in
from services.gateway.pages.runs import actions as run_actions
from services.gateway.pages.runs import routes as runs
from services.gateway.pages.runs import socket as run_socket

front = APIRouter(include_in_schema=False)


@front.get("/")
async def show_front() -> RedirectResponse:
    return RedirectResponse("/runs")


# One per line.
ROUTERS: tuple[APIRouter, ...] = (
    front,
    assets.router,
    appearance.router,
    sign_in.router,
    runs.router,
    run_actions.router,
    run_socket.router,
)
