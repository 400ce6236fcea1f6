"""The theme, kept in a cookie: the server renders it, so that no page flashes."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from services.gateway.pages.page import PageOf, is_own_path, sent_from

# Browsers keep no cookie for longer than 400 days.
_YEAR_SECONDS = 365 * 24 * 3600

router = APIRouter(include_in_schema=False)


@router.post("/theme")
async def choose(
    request: Request, page: PageOf, theme: Annotated[str, Form()] = "", back: Annotated[str, Form()] = "/"
) -> Response:
    """`theme` is "light", "dark" or, to follow the system, "". `back` is the page as it was loaded."""
    # Filters change the address of a page after that.
    now = sent_from(request)
    if now.partition("?")[0] == back.partition("?")[0]:
        back = now
    response = page.go(back if is_own_path(back) else "/")
    if theme in {"light", "dark"}:
        response.set_cookie("theme", theme, max_age=_YEAR_SECONDS, samesite="lax", httponly=True, path="/")
    else:
        response.delete_cookie("theme", path="/")
    return response
