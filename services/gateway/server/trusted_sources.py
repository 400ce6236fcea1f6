"""Keeps foreign web pages out: a browser on this machine reaches the gateway, and so do the pages in it.

A page whose own name was made to resolve to this address (DNS rebinding) sends that name as Host. A page from
elsewhere (cross-site requests) sends its Origin, or Sec-Fetch-Site, with everything that changes something,
and with a socket, which browsers open across sites.
"""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.gateway.http.error_handlers import plain_problem, problem_response
from services.gateway.http.paths import PROBES, READING_METHODS, is_page

_ANY = "*"
_CHECKED = ("http", "websocket")
_OWN_SITES = frozenset({"none", "same-origin"})


@dataclass(frozen=True, slots=True)
class TrustedNames:
    """Names of the gateway beside localhost and addresses, and origins whose pages may change something."""

    hosts: Collection[str] = ()
    origins: Collection[str] = ()

    def is_own_host(self, host: str) -> bool:
        """A page cannot make its name an address, so addresses are own; `host` may have a port."""
        name = _host_name(host)
        is_local = name == "localhost" or name.endswith(".localhost")
        return is_local or _is_address(name) or name in self.hosts or _ANY in self.hosts

    def is_own_page(self, origin: str, host: str) -> bool:
        return origin in self.origins or _authority(origin) == host.lower()


def _authority(origin: str) -> str | None:
    """None where the text is not an origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


class TrustedSources:
    """Refuses requests to names that are not the gateway's, and changes that a foreign page asks for."""

    def __init__(self, app: ASGIApp, *, trusted: TrustedNames) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Probes of a cluster have the pod's address as host, and their answers hold no data.
        is_checked = scope["type"] in _CHECKED and scope["path"] not in PROBES
        problem = self._problem(scope) if is_checked else None
        if problem:
            await problem_response(plain_problem(scope["path"], *problem))(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _problem(self, scope: Scope) -> tuple[int, str, str] | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._trusted.is_own_host(host):
            hint = "an operator lists its names in PROCTOR_GATEWAY_ALLOWED_HOSTS"
            return 421, "UNKNOWN_HOST", f"This gateway is not called {_host_name(host)!r:.100}; {hint}."
        is_socket = scope["type"] == "websocket"
        if not is_socket and scope["method"] in READING_METHODS:
            return None
        # Only browsers open sockets and send forms of pages, and they send the origin.
        unnamed = "unknown" if is_socket or is_page(scope["path"]) else "none"
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", unnamed)
        is_own_page = site in _OWN_SITES if origin is None else self._trusted.is_own_page(origin, host)
        if is_own_page:
            return None
        verb = "watch" if is_socket else "change"
        page = f"A page of {origin or 'another site'!r:.100} may {verb} nothing here"
        hint = "an operator lists pages that may in PROCTOR_GATEWAY_ALLOWED_ORIGINS"
        return 403, "FOREIGN_PAGE", f"{page}; {hint}."


def _host_name(host: str) -> str:
    """The name or address without its port."""
    end = host.rfind("]") + 1
    name = host[:end] if end else host.partition(":")[0]
    # A name may end in the dot of the root, and is the same name.
    return name.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
