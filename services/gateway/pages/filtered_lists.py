"""Lists of runs, and of what consists of runs: their filters, their pages, and what is pushed to them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

from fastapi import WebSocket
from starlette.responses import Response

from proctor.v1 import run_pb2
from proctor.values.run import CHANGING_STATES
from proctor.wire.enums import value_of, words_of
from services.gateway.backends.calls import Scheduler
from services.gateway.pages.addresses import FilteredPage
from services.gateway.pages.filters import ANY_MODEL, ModelFilter, model_filter
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
from services.gateway.pages.page import Page
from services.gateway.pages.rows.runs import RunRow

Row = TypeVar("Row")
_STATES = words_of(run_pb2.RunState)


class ListFilters:
    """Filters of a list, as its address has them. An unknown state is ignored: old links stay valid."""

    def __init__(self, **given: str) -> None:
        """`given` are in the order of the address; "state", "model" and "after" are among them."""
        self.named: Mapping[str, str] = {name: value.strip() for name, value in given.items()} | (
            {} if given["state"] in _STATES else {"state": ""}
        )

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    @property
    def state(self) -> run_pb2.RunState.ValueType:
        return value_of(run_pb2.RunState, self["state"], unset="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView(FilteredPage, Generic[Row]):
    """A page of a list. `changing_runs` may still change it; on the first page also new ones."""

    rows: Sequence[Row]
    total: int
    following: str
    now: datetime
    changing_runs: Sequence[str]
    suites: Sequence[str] = ()
    model: ModelFilter = ANY_MODEL
    # That of the data set of the filters.
    dataset_name: str = ""

    @property
    def address(self) -> str:
        """The address of this page of the list."""
        return self.link(after=self.get("after"))

    @property
    def is_live(self) -> bool:
        """A name of several models lists nothing, now and later."""
        return not self.model.fault and bool(self.changing_runs or not self.get("after"))

    @property
    def is_filtered(self) -> bool:
        return any(name != "after" for name in self.filters)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Row]):
    """A page of a list as the scheduler has it, with the runs that its rows consist of."""

    rows: Sequence[Row] = ()
    runs: Sequence[RunRow] = ()
    total: int = 0
    following: str = ""


async def read_list(
    scheduler: Scheduler,
    path: str,
    filters: ListFilters,
    read: Callable[[str], Awaitable[Listed[Row]]],
    shown: tuple[datetime, bool],
) -> ListView[Row]:
    """The list at `path`, which `read` gives for the full name of a model.

    Empty where the name is that of several models. `shown`: the time, and whether the page with the filters.
    """
    now, is_whole = shown
    model = await model_filter(scheduler, filters["model"], has_field=is_whole)
    listed: Listed[Row] = Listed() if model.fault else await read(model.name)
    return ListView(
        path=path,
        rows=listed.rows,
        total=listed.total,
        following=listed.following,
        filters={name: value for name, value in filters.named.items() if value},
        now=now,
        changing_runs=[run.job_id for run in listed.runs if run.status in CHANGING_STATES],
        model=model,
    )


def show_list(page: Page, template: str, view: ListView[Row]) -> Response:
    """`template` has a part of its name, and rows that are pushed."""
    status = 422 if view.model.fault else 200
    response = page.show(template, view, part=f"{template}_part", status=status)
    if page.is_part and not page.is_at(view.address):
        response.headers["HX-Push-Url"] = view.address
    return response


async def push_list(
    socket: WebSocket,
    build: str,
    template: str,
    filters: ListFilters,
    read: Callable[[ListFilters, datetime], Awaitable[ListView[Row]]],
) -> None:
    """`build` is the digest of the files that the page was made with."""
    state = socket.app.state

    async def pushed() -> PushedView:
        return PushedView(await read(filters, state.clock.now()))

    await push_view(socket, build, PartAddress(f"{template}_rows", urlencode(filters.named)), pushed)
