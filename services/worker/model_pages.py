"""A provider's list of models, told page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from services.worker.engine import ModelInfo

# More than are listed of a pool, so that it is told that some are left out.
_ENOUGH_MODELS = 2001
_MOST_PAGES = 100

# Of the name of a page, empty for the first: its models and the name of the next, empty after the last.
ReadPage = Callable[[str], Awaitable[tuple[Iterable[ModelInfo], str]]]


async def read_pages(read_page: ReadPage) -> tuple[ModelInfo, ...]:
    """All pages, unless the server goes in circles or finds no end."""
    models: list[ModelInfo] = []
    page, known = "", {""}
    while len(known) <= _MOST_PAGES and len(models) < _ENOUGH_MODELS:
        listed, page = await read_page(page)
        models += listed
        if page in known:
            break
        known.add(page)
    return tuple(models)
