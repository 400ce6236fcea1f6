"""A list of models that a server tells page by page."""

from proctor.values.providers.models import ModelInfo
from services.worker.engines.http.provider_engine import read_pages


def model(name: str) -> ModelInfo:
    return ModelInfo(name)


class Pages:
    """Pages of `size` models each; each names the next one by its number, without end or up to a last."""

    def __init__(self, size: int, last: int | None = None) -> None:
        self._size = size
        self._last = last
        self.read = 0

    async def __call__(self, page: str) -> tuple[list[ModelInfo], str]:
        self.read += 1
        number = int(page or 0)
        models = [model(f"x/{number}-{each}") for each in range(self._size)]
        return models, "" if number == self._last else str(number + 1)


async def test_all_pages_are_read_in_order() -> None:
    models = await read_pages(Pages(2, last=2))
    assert [each.model for each in models] == ["x/0-0", "x/0-1", "x/1-0", "x/1-1", "x/2-0", "x/2-1"]


async def test_a_page_that_was_read_already_is_the_last() -> None:
    async def circle(page: str) -> tuple[list[ModelInfo], str]:
        return [model(f"x/{page}")], {"": "a", "a": "b", "b": "a"}[page]

    assert [each.model for each in await read_pages(circle)] == ["x/", "x/a", "x/b"]


async def test_no_more_is_read_than_is_listed() -> None:
    pages = Pages(1000)
    assert len(await read_pages(pages)) == 3000
    assert pages.read == 3


async def test_pages_without_end_and_without_models_end() -> None:
    pages = Pages(0)
    assert await read_pages(pages) == ()
    assert pages.read == 100
