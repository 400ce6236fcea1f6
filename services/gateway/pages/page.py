"""A response of a page: the whole page, or the part that a script asks for."""

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from proctor.values.names.user import Caller
from services.gateway.pages.html import Html

# A smaller page fits into one packet, packed or not.
_MIN_PACKED = 1000
_THEMES = frozenset({"light", "dark"})
_NOTICE = "proctor_notice"
# In UTF-8 and base64 at most 2.2 KiB of the 4 KiB that a cookie may have.
_MAX_NOTICE_CHARACTERS = 400
# The page that shows it follows at once; one that never comes must not show it later.
_NOTICE_SECONDS = 20
# In the body of a form each character may take three bytes.
_MAX_CARRIED = 4000


@dataclass(frozen=True, slots=True)
class Notice:
    """The result of an action. `undo` is the path of a form that undoes it."""

    text: str
    is_problem: bool = False
    undo: str = ""
    undo_name: str = "Undo"


@dataclass(frozen=True, slots=True)
class Layout:
    """The frame of every whole page around its view. `address` shows it again, or the page of its form."""

    path: str
    address: str
    theme: str
    caller: Caller
    notice: Notice | None

    @property
    def back(self) -> str:
        """The address that a form of the page leads back to."""
        return carried(self.address)

    def may_change(self, owner: str, project_id: int) -> bool:
        """Whether what belongs to `owner` in a project offers its changes. The services decide again."""
        return self.caller.may_change(owner, project_id)

    def may_store(self, project_id: int | None) -> bool:
        """Whether orders, uploads and marks are offered: in a project, or for None in any."""
        if project_id is None:
            return not self.caller.is_viewer and self.caller.may_store(self.caller.key_project)
        return self.caller.may_store(project_id)


class Page:
    """How a handler answers a request for a page."""

    def __init__(self, request: Request, html: Html) -> None:
        self._request = request
        self._html = html

    @property
    def is_part(self) -> bool:
        """A script asks for a part of the page."""
        return self._request.headers.get("hx-request-type") == "partial"

    @property
    def caller(self) -> Caller:
        return _caller(self._request)

    @property
    def target(self) -> str:
        """The id of the element that the part is for; "" for none."""
        return self._request.headers.get("hx-target", "").rpartition("#")[2]

    def is_at(self, address: str) -> bool:
        """A script asks on the page of this address: what renews itself is not a step to go back to."""
        current = _split(self._request.headers.get("hx-current-url", ""))
        return address == urlunsplit(("", "", current.path, current.query, ""))

    def show(self, template: str, view: object, *, part: str = "", status: int = 200) -> Response:
        """The whole page; or `part`, a template of the same view, where a script asks for it."""
        if part and self.is_part:
            return self._sent(self._html.render(part, view=view), status)
        notice = _notice(self._request)
        layout = Layout(
            path=self._request.url.path,
            address=_address(self._request),
            theme=theme_of(self._request),
            caller=_caller(self._request),
            notice=notice,
        )
        response = self._sent(self._html.render(template, view=view, page=layout), status)
        if _NOTICE in self._request.cookies:
            response.delete_cookie(_NOTICE, path="/")
        return response

    def go(self, path: str, notice: Notice | None = None) -> Response:
        """Answers an action: another page, which shows the notice."""
        response = RedirectResponse(path, 303)
        if notice:
            short = replace(notice, text=notice.text[:_MAX_NOTICE_CHARACTERS])
            packed = base64.urlsafe_b64encode(json.dumps(asdict(short), ensure_ascii=False).encode()).decode()
            flags: dict[str, Any] = {"max_age": _NOTICE_SECONDS, "httponly": True, "samesite": "strict"}
            response.set_cookie(_NOTICE, packed, path="/", **flags)
        return response

    def leave(self, path: str, notice: Notice | None = None) -> Response:
        """Answers a form that its script may have sent: the browser goes to another page, as with `go`."""
        done = self.go(path, notice)
        if self.is_part:
            # After a redirect the script would fetch the page in place of the browser.
            done.status_code = 200
            done.headers["HX-Redirect"] = path
        return done

    def _sent(self, html: str, status: int) -> Response:
        headers = {
            "Cache-Control": "no-store",
            "Vary": "HX-Request, HX-Request-Type, Cookie, Accept-Encoding",
        }
        body = html.encode()
        if len(body) >= _MIN_PACKED and "gzip" in self._request.headers.get("accept-encoding", ""):
            body, headers = gzip.compress(body, 5), headers | {"Content-Encoding": "gzip"}
        return HTMLResponse(body, status, headers=headers)


def theme_of(request: Request) -> str:
    """ "light" or "dark"; "" follows the system."""
    given = request.cookies.get("theme", "")
    return given if given in _THEMES else ""


async def _page(request: Request) -> Page:
    return Page(request, request.app.state.html)


# How handlers of pages answer.
PageOf = Annotated[Page, Depends(_page)]


def is_own_path(path: str) -> bool:
    """An address of this site: no other site is reached by it."""
    return path.startswith("/") and not path.startswith(("//", "/\\"))


def carried(address: str) -> str:
    """The address, or its path alone where a form cannot carry it."""
    return address if len(address) <= _MAX_CARRIED else address.partition("?")[0][:_MAX_CARRIED]


def sent_from(request: Request) -> str:
    """The address of the page whose form was sent; "/" where the browser does not send it."""
    referer = request.headers.get("referer", "")
    return _local(referer) if _split(referer).netloc == request.url.netloc else "/"


def _address(request: Request) -> str:
    """The address of the page. For a form that was sent it is the page with the form."""
    return _local(str(request.url)) if request.method == "GET" else sent_from(request)


def _local(url: str) -> str:
    parts = _split(url)
    path = urlunsplit(("", "", parts.path, parts.query, ""))
    return path if is_own_path(path) else "/"


def _split(url: str) -> SplitResult:
    """The parts of an address; none of a text that is not an address, such as "http://["."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _caller(request: Request) -> Caller:
    """The caller; one without a name where a request was refused before its caller was found."""
    caller: Caller | None = request.scope["state"].get("caller")
    return caller or Caller("")


def _notice(request: Request) -> Notice | None:
    """None too for a cookie that no page has written."""
    try:
        given = json.loads(base64.urlsafe_b64decode(request.cookies[_NOTICE]))
        return _checked(given)
    # A list within many lists is a RecursionError.
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def _checked(given: Mapping[str, Any]) -> Notice:
    notice = Notice(**given)
    return Notice(
        text=str(notice.text)[:_MAX_NOTICE_CHARACTERS],
        is_problem=bool(notice.is_problem),
        undo=notice.undo if is_own_path(str(notice.undo)) else "",
        undo_name=str(notice.undo_name)[:40],
    )
