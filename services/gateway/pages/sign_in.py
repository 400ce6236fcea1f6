"""Signing in with an API key, which begins a session: the browser keeps that, and never the key."""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from proctor.v1.access_service_pb2 import EndSessionRequest
from proctor.values.names.user import Caller, Role
from services.common.errors import DependencyUnavailable, DomainError
from services.gateway.auth.admission import SIGN_IN, Admission
from services.gateway.auth.oidc.sign_in import OidcSignIn
from services.gateway.auth.session_cookies import (
    begun_of,
    forget_begun,
    forget_session,
    keep_begun,
    keep_session,
    session_of,
)
from services.gateway.auth.sessions import Session
from services.gateway.backends.calls import SchedulerCalls, calling_for
from services.gateway.http.error_handlers import problem_of
from services.gateway.http.errors import KeyUnknown, ProviderRefused, SessionOver
from services.gateway.pages.page import Notice, PageOf, carried, is_own_path

_ONLY_HERE = "This browser is signed out. Other gateways do not know it: the scheduler is away."

# The cookie of a sign-in has it.
_MAX_NEXT = 1000

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class SignInView:
    """`next` is the address that follows."""

    problem: str
    next: str
    has_provider: bool = False


@router.get("/sign-in")
async def show(
    request: Request,
    page: PageOf,
    next: str = "/",  # noqa: A002  # as the address names it
) -> Response:
    return page.show("sign_in", SignInView("", carried(next), _has_provider(request)))


@router.get("/sign-in/provider")
async def begin(
    request: Request,
    page: PageOf,
    next: str = "/",  # noqa: A002  # as the address names it
) -> Response:
    """To the provider, which sends the browser back with a code."""
    provider = _provider(request)
    if provider is None:
        return page.go("/sign-in")
    return await to_provider(provider, next)


async def to_provider(provider: OidcSignIn, follows: str) -> Response:
    """Raises `ProviderAway`."""
    begun = await provider.begin(follows if is_own_path(follows) and len(follows) <= _MAX_NEXT else "/")
    response = RedirectResponse(begun.address, 303)
    keep_begun(response, begun.kept, begun.state, by_tls=provider.by_tls)
    return response


@router.get("/sign-in/callback")
async def finish(
    request: Request, page: PageOf, code: str = "", state: str = "", error: str = ""
) -> Response:
    """From the provider: the code is good for one sign-in of the browser that began it."""
    admission, provider = _admission(request), _provider(request)
    if provider is None:
        return page.go("/sign-in")
    try:
        if error or not code:
            raise ProviderRefused
        caller, follows = await provider.finish(begun_of(request, state), state, code)
    except DomainError as failed:
        view = SignInView(failed.message, "/", has_provider=True)
        refused = page.show("sign_in", view, status=problem_of(failed, request.url.path).status)
        forget_begun(refused, state)
        return refused
    caller = replace(caller, address=_address(request))
    response = page.go(follows, Notice(f"You are signed in as {caller.name}."))
    forget_begun(response, state)
    text = admission.identity.sessions.begin_by_provider(caller)
    keep_session(response, request, text, by_tls=provider.by_tls)
    begun = replace(SIGN_IN, object_id=admission.identity.sessions.read(text).session_id)
    await admission.trail.note_done(begun, caller)
    return response


@router.post("/sign-in")
async def sign_in(
    request: Request,
    page: PageOf,
    key: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002  # as the form names it
) -> Response:
    admission: Admission = request.app.state.admission
    try:
        caller = await admission.caller_of({"x-api-key": key.strip()}, _address(request))
        # Every replica remembers for days each session that was signed out.
        if not caller.is_operator:
            await admission.limit.count(caller.name, is_read=False)
    except DomainError as error:
        return page.show(
            "sign_in",
            SignInView(error.message, next, _has_provider(request)),
            status=problem_of(error, request.url.path).status,
        )
    response = page.go(next if is_own_path(next) else "/", Notice(f"You are signed in as {caller.name}."))
    # Without keys any text is right, and begins no session.
    if caller.is_verified:
        sessions = admission.identity.sessions
        text = sessions.begin(caller)
        keep_session(response, request, text)
        begun = replace(SIGN_IN, object_id=sessions.read(text).session_id)
        await admission.trail.note_done(begun, caller)
    return response


@router.post("/sign-out")
async def sign_out(request: Request, page: PageOf, scheduler: SchedulerCalls) -> Response:
    admission: Admission = request.app.state.admission
    notice = Notice("You are signed out.")
    try:
        session = admission.identity.sessions.read(session_of(request))
        lasts = admission.identity.sessions.left_of(session)
        admission.keys.ring.end_session(session.session_id, lasts.total_seconds())
        ended = EndSessionRequest(session_id=session.session_id)
        ended.ends_in.FromTimedelta(lasts)
        with calling_for(_who_ends(session, request)):
            await scheduler.access.EndSession(ended)
    except (KeyUnknown, SessionOver):
        # There is none to end.
        pass
    except DependencyUnavailable:
        notice = Notice(_ONLY_HERE, is_problem=True)
    response = page.go("/sign-in", notice)
    forget_session(response)
    return response


def _who_ends(session: Session, request: Request) -> Caller:
    """The key of the session is not asked: one may sign out after its end."""
    key_id = session.key if session.is_stored else ""
    return Caller(session.user, Role.VIEWER, key_id=key_id, address=_address(request))


def _admission(request: Request) -> Admission:
    admission: Admission = request.app.state.admission
    return admission


def _provider(request: Request) -> OidcSignIn | None:
    return _admission(request).provider


def _has_provider(request: Request) -> bool:
    """Whether browsers sign in there."""
    provider = _provider(request)
    return provider is not None and provider.takes_browsers


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
