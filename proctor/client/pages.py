"""Lists that come in pages: all of one, or one full page."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from copy import deepcopy
from typing import Protocol, TypeVar


class _Request(Protocol):
    page_size: int
    page_token: str


class _Page(Protocol):
    next_page_token: str


R = TypeVar("R", bound=_Request)
P = TypeVar("P", bound=_Page)
T = TypeVar("T")


async def all_pages(call: Callable[[R], Awaitable[P]], request: R) -> AsyncGenerator[P]:
    """From the page of the request to the last one; `request` is the caller's and stays as it is."""
    asked = deepcopy(request)
    while True:
        page = await call(asked)
        yield page
        if not page.next_page_token:
            return
        asked.page_token = page.next_page_token


async def full_page(
    call: Callable[[R], Awaitable[P]], request: R, rows: Callable[[P], Iterable[T]]
) -> tuple[list[T], str]:
    """One full page, and the token of the next one, empty on the last.

    The server examines a limited number of rows per call and few of them may match: a page may take several.
    """
    asked = deepcopy(request)
    found: list[T] = []
    while True:
        page = await call(asked)
        found += rows(page)
        if not page.next_page_token or (found and len(found) >= request.page_size):
            return found, page.next_page_token
        asked.page_token = page.next_page_token
        asked.page_size = max(0, request.page_size - len(found))
