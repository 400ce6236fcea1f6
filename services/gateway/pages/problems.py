"""Headers of every response of a page, and errors as pages for people.

All parts of the gateway answer an error with a problem document. Where a browser asked for a page, this
becomes a page with the same status; where a script asked for a part of one, a notice.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.http.api_errors import NO_SUCH_PAGE
from services.gateway.http.error_handlers import MEDIA_TYPE, asks_for_page
from services.gateway.http.paths import is_page
from services.gateway.pages.addresses import address
from services.gateway.pages.html import ENTRIES, Html
from services.gateway.pages.page import Page

# No inline scripts or styles: text of a model that slipped into a page as it is could not run.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    # Forms of pages say where they come from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# Lists of things that have a page of their own.
_LISTS = frozenset({"/runs", "/suites", "/datasets", "/batches", "/rollouts"})
_NO_SUCH_PAGE_TITLE = "No such page of the list"
_FROM_THE_START = "Start at its first page."
_TITLES = {
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    409: "Not now",
    413: "Too large",
    421: "Unknown name",
    422: "This cannot be read",
    429: "Too many requests",
    500: "Something broke",
    503: "Not available now",
}


@dataclass(frozen=True, slots=True)
class ProblemView:
    """An error for people."""

    title: str
    sentence: str
    hint: str
    status: int
    path: str
    # The address of the list's first page, where the address names a page that the list does not have.
    first_page: str = ""

    @property
    def start(self) -> tuple[str, str]:
        """The address and the name of the list to go on from."""
        return _list_of(self.path)


class PageResponses:
    """Around the whole application; responses of APIs pass as they are."""

    def __init__(self, app: ASGIApp, *, html: Html) -> None:
        self._app = app
        self._html = html

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        problem = _Problem()

        async def as_page(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if headers.get("content-type", "").startswith(MEDIA_TYPE) and asks_for_page(scope):
                    problem.begin(message)
                    return
            elif problem.start and message["type"] == "http.response.body":
                # Problem documents are short; all other responses pass in their pieces.
                problem.body += message.get("body", b"")
                if not message.get("more_body", False):
                    await self._show(scope, receive, send, problem)
                return
            await send(message)

        await self._app(scope, receive, as_page)

    async def _show(self, scope: Scope, receive: Receive, send: Send, problem: "_Problem") -> None:
        request = Request({**scope, "state": scope.get("state", {})})
        view = problem_view(json.loads(problem.body), request.url.query)
        response = Page(request, self._html).show("problem", view, part="problem_part", status=view.status)
        for name, value in problem.kept_headers().items():
            response.headers[name] = value
        if Headers(scope=scope).get("hx-request-type") == "partial":
            response.headers["HX-Retarget"] = "#notices"
            response.headers["HX-Reswap"] = "beforeend"
            # The address stays that of what is shown.
            response.headers["HX-Push-Url"] = "false"
            response.headers["HX-Replace-Url"] = "false"
        await response(scope, receive, send)


class _Problem:
    """A problem document, collected."""

    def __init__(self) -> None:
        self.start: Message | None = None
        self.body = b""

    def begin(self, message: Message) -> None:
        self.start = message

    def kept_headers(self) -> dict[str, str]:
        assert self.start
        # The page has another type and length than the document.
        dropped = ("content-type", "content-length")
        return {
            name: value for name, value in Headers(raw=self.start["headers"]).items() if name not in dropped
        }


def problem_view(document: Mapping[str, Any], query: str) -> ProblemView:
    """`query` is that of the address."""
    status, path = int(document["status"]), str(document["instance"])
    sentence = str(document["detail"])
    has_no_such_page = document["reason"] == NO_SUCH_PAGE
    return ProblemView(
        title=_NO_SUCH_PAGE_TITLE if has_no_such_page else _TITLES.get(status, str(document["title"])),
        sentence=sentence if sentence.endswith((".", "!", "?")) else f"{sentence}.",
        hint=_FROM_THE_START if has_no_such_page else _hint(status, path, document.get("retry_after")),
        status=status,
        path=path,
        first_page=_first_page(path, query) if has_no_such_page else "",
    )


def _first_page(path: str, query: str) -> str:
    """The address of the first page with the same filters. The selection of Compare stays open."""
    given = [(name, "1" if name == "choose" else value) for name, value in parse_qsl(query)]
    return address(path, [(name, value) for name, value in given if name != "after"])


def _hint(status: int, path: str, retry_after: int | None) -> str:
    if status == 404:
        _, named = _list_of(path)
        return (
            f"It may have been deleted, or the address is incomplete. Search for it, or start at the {named}."
        )
    if status == 403:
        return "Nothing has changed. An operator may help."
    if status in (429, 503) and retry_after:
        return f"Try again in {retry_after} s; what you have entered is still in the form if you go back."
    if status == 500:
        return (
            "The log of the gateway says more. Try again; if it stays, give the incident's id to an operator."
        )
    return ""


def _list_of(path: str) -> tuple[str, str]:
    """The address and the name of the list that a page stands in."""
    return next(
        ((entry.path, entry.name.lower()) for entry in ENTRIES if entry.path in _LISTS and entry.holds(path)),
        ("/runs", "runs"),
    )
