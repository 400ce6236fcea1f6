"""The cookie that holds the session of a browser."""

from zlib import crc32

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from services.gateway.auth.sessions import LIFETIME

# Browsers take the first one by TLS only, and from this very host: no page of a neighbouring name can set it.
SECURE_COOKIE = "__Host-proctor_session"
PLAIN_COOKIE = "proctor_session"
_BEGUN_COOKIE, _BEGUN_PATH, _BEGUN_SECONDS = "proctor_sign_in", "/sign-in/", 600
_MAX_BEGUN = 8


def session_of(request: HTTPConnection) -> str:
    """The text of the session; "" for none."""
    return request.cookies.get(SECURE_COOKIE) or request.cookies.get(PLAIN_COOKIE, "")


def is_secure(request: HTTPConnection) -> bool:
    """Behind a proxy with TLS only the browser says so: by Origin, or by the cookie that it has."""
    by_origin = request.headers.get("origin", "").startswith("https:")
    return by_origin or request.url.scheme == "https" or SECURE_COOKIE in request.cookies


def keep_session(
    response: Response, request: HTTPConnection, text: str, *, by_tls: bool | None = None
) -> None:
    """`by_tls`: whether browsers reach the gateway so, where that is known."""
    secure = is_secure(request) if by_tls is None else by_tls
    response.set_cookie(
        SECURE_COOKIE if secure else PLAIN_COOKIE,
        text,
        max_age=int(LIFETIME.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=secure,
        path="/",
    )


def begun_of(request: HTTPConnection, state: str) -> str:
    """The text of the sign-in at the provider that this browser has begun with the state; "" for none."""
    return request.cookies.get(_begun_cookie(state), "")


def keep_begun(response: Response, text: str, state: str, *, by_tls: bool) -> None:
    """Until the browser is back from the provider: by a link from there, so it is not strict."""
    response.set_cookie(
        _begun_cookie(state),
        text,
        max_age=_BEGUN_SECONDS,
        httponly=True,
        samesite="lax",
        secure=by_tls,
        path=_BEGUN_PATH,
    )


def forget_begun(response: Response, state: str) -> None:
    response.delete_cookie(_begun_cookie(state), path=_BEGUN_PATH, httponly=True, samesite="lax")


def _begun_cookie(state: str) -> str:
    """Tabs that sign in at the same time keep one each; foreign pages cannot fill the browser with them."""
    return f"{_BEGUN_COOKIE}_{crc32(state.encode(errors='replace')) % _MAX_BEGUN}"


def forget_session(response: Response) -> None:
    response.delete_cookie(SECURE_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    response.delete_cookie(PLAIN_COOKIE, path="/", httponly=True, samesite="lax")


def renewing_session(scope: Scope, send: Send) -> Send:
    """Adds the cookie of a session that goes on to the response of the request which renewed it."""
    text = scope["state"].get("renewed_session", "")
    if not text:
        return send

    async def with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = Response()
            keep_session(kept, HTTPConnection(scope), text)
            MutableHeaders(scope=message).append("Set-Cookie", kept.headers["Set-Cookie"])
        await send(message)

    return with_cookie
