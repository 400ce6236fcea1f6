"""Sends browsers through the provider again, which alone knows that a user has left a group.

The provider has a session of its own, so the user sees nothing of it, unless it wants a password.
"""

from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.auth.admission import Admission
from services.gateway.auth.oidc.sign_in import OidcSignIn
from services.gateway.auth.session_cookies import session_of
from services.gateway.http.error_handlers import asks_for_page
from services.gateway.http.errors import ProviderAway
from services.gateway.pages.sign_in import to_provider

_SIGN_IN = "/sign-in"


class RenewedSignIn:
    """Takes a page that a browser goes to for the time to ask: parts of pages and forms would be lost."""

    def __init__(self, app: ASGIApp, *, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if provider := self._provider(scope):
            try:
                response = await to_provider(provider, address_of(scope))
            except ProviderAway:
                # The session goes on to its end.
                pass
            else:
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _provider(self, scope: Scope) -> OidcSignIn | None:
        """None where it is not to be asked now."""
        provider = self._admission.provider
        if provider is None or not provider.takes_browsers or not _goes_to_page(scope):
            return None
        is_due = self._admission.identity.sessions.is_due(session_of(HTTPConnection(scope)))
        return provider if is_due else None


def address_of(scope: Scope) -> str:
    """Path and query as the browser sent them: a decoded "?" or "#" of a name would end the path."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")


def _goes_to_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].startswith(_SIGN_IN):
        return False
    return asks_for_page(scope) and "hx-request" not in Headers(scope=scope)
