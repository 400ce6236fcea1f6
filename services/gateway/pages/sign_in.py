"""Signing in with an API key, which the browser keeps in a cookie that no script reads."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from services.common.errors import DomainError
from services.gateway.auth.admission import Admission
from services.gateway.http.error_handlers import problem_of
from services.gateway.http.paths import KEY_COOKIE
from services.gateway.pages.page import Notice, PageOf, carried, is_own_path

# A key has no end of its own, so the browser forgets it after a month.
_KEPT_SECONDS = 30 * 24 * 3600

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class SignInView:
    """`next` is the address that follows."""

    problem: str
    next: str


@router.get("/sign-in")
async def show(page: PageOf, next: str = "/") -> Response:  # noqa: A002  # as the address names it
    return page.show("sign_in", SignInView("", carried(next)))


@router.post("/sign-in")
async def sign_in(
    request: Request,
    page: PageOf,
    key: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002  # as the form names it
) -> Response:
    admission: Admission = request.app.state.admission
    address = request.client.host if request.client else ""
    try:
        caller = await admission.caller_of({"x-api-key": key.strip()}, address)
    except DomainError as error:
        return page.show(
            "sign_in", SignInView(error.message, next), status=problem_of(error, request.url.path).status
        )
    response = page.go(next if is_own_path(next) else "/", Notice(f"You are signed in as {caller.name}."))
    if not caller.is_verified:
        # Without keys any text is right, also one that no cookie can hold.
        return response
    # Behind a proxy with TLS only the browser says so.
    is_secure = request.headers.get("origin", "").startswith("https:") or request.url.scheme == "https"
    response.set_cookie(
        KEY_COOKIE,
        key.strip(),
        max_age=_KEPT_SECONDS,
        httponly=True,
        samesite="lax",
        secure=is_secure,
        path="/",
    )
    return response


@router.post("/sign-out")
async def sign_out(page: PageOf) -> Response:
    response = page.go("/sign-in", Notice("You are signed out."))
    response.delete_cookie(KEY_COOKIE, path="/")
    return response
