"""Pages of a gateway as a browser asks for them, and runs to show on them."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy

from proctor.v1 import run_pb2, summary_pb2
from tests.fakes.gateway.gateway_harness import GatewayHarness

RUN_ID = "8f3c2a10-0000-4000-8000-000000000001"
# Text that would do something if any page took it for markup, and characters that turn or hide others.
HOSTILE = '<img src=x onerror=alert(1)>"\'><b hx-get="/x" hx-trigger="load">\u202egnp.exe\u200b</script>'
# Tags but those that stand in a line of text.
_EDGE = re.compile(
    r" ?(</?(?!(?:a|b|code|del|ins|span|svg|time|wbr)\b)[a-z](?:[^>\"']|\"[^\"]*\"|'[^']*')*>) ?"
)
_BROWSER = {"Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Shown:
    """A page as it came."""

    status: int
    html: str
    headers: CIMultiDictProxy[str]

    @property
    def elements(self) -> list[tuple[str, dict[str, str | None]]]:
        """Tags with their attributes, in order."""
        parser = _Elements()
        parser.feed(self.html)
        return parser.found


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@asynccontextmanager
async def socket(
    harness: GatewayHarness, path: str, **headers: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """As a page of the gateway opens it."""
    given = {"Origin": harness.http, **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(harness.http + path, headers=given) as ws,
    ):
        yield ws


async def show(
    harness: GatewayHarness,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: str = "",
) -> Shown:
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method,
            harness.http + path,
            headers={**_BROWSER, **(headers or {})},
            data=body or None,
            allow_redirects=False,
        ) as response,
    ):
        text = await response.text()
        html = compact(text) if response.content_type == "text/html" else text
        return Shown(response.status, html, response.headers)


def compact(html: str) -> str:
    """Without the space that no browser shows: at the edges of blocks, and all but one elsewhere."""
    parts = re.split(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", html, flags=re.DOTALL)
    parts[::2] = [_EDGE.sub(r"\1", re.sub(r"[ \t\n]+", " ", part)) for part in parts[::2]]
    return "".join(parts)


def running(tasks: int = 8, **facts: Any) -> run_pb2.Run:
    """A run that goes: half of each task is done."""
    order = run_pb2.RunOrder(project_id=1, suite="glue", model="vllm/Qwen/Qwen3-8B")
    run = run_pb2.Run(run_id=RUN_ID, order=order, user="local", state=run_pb2.RUN_STATE_RUNNING, **facts)
    run.created_at.FromSeconds(1_700_000_000)
    run.started_at.FromSeconds(1_700_000_010)
    run.admitted_at.FromSeconds(1_700_000_010)
    progress = run.progress
    progress.total, progress.recorded, progress.phase = 2000 * tasks, 1000 * tasks, "running"
    progress.samples_per_second, progress.tokens_per_second = 101.5, 6195.25
    progress.eta_seconds, progress.eta_low_seconds, progress.eta_high_seconds = 379, 326, 451
    progress.failures["timeout"] = 92
    for index in range(tasks):
        progress.tasks.add(task=f"task_{index}", total=2000, recorded=1000, unparsed=3)
    return run


def summary_of(run: run_pb2.Run, **facts: Any) -> summary_pb2.RunSummary:
    """Figures of all its tasks."""
    summary = summary_pb2.RunSummary(run_id=run.run_id, answered=1000, total=2000, **facts)
    for task in run.progress.tasks:
        figure = summary_pb2.MetricFigure(
            metric="acc",
            mean=0.823,
            stderr=0.012,
            ci_low=0.8,
            ci_high=0.846,
            n=1000,
            interval_method="wilson",
        )
        summary.tasks.add(task=task.task, answered=1000, total=2000, metrics=[figure])
    return summary
