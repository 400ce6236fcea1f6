"""Time to the first row of a page in a browser, and the bytes that were sent for it.

The clock is that of the page: from the navigation to the frame with the first row. The tool asks for the time
after the load: a locator that waits for the row runs scripts of the tool in the page, 40 ms of CPU before the
frame. A page with nothing on it shows how much is the browser's.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import aiohttp
from playwright.async_api import Browser, Page

from tests.bench.harness.process_tree import usage_of_tree
from tests.harness.stack_harness import StackHarness

LOOKS = 5
_LOOK_LIMIT_SECONDS = 60.0
# A task after the frame that shows the first row: milliseconds since the navigation began.
_PAINTED = """(selector => {
    globalThis.painted = new Promise(resolve => {
        const look = () => {
            const isThere = [...document.querySelectorAll(selector)].some(each => each.checkVisibility());
            if (isThere) setTimeout(() => resolve(performance.now())); else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
})(%s)"""
_PART = {"HX-Request": "true", "HX-Request-Type": "partial", "Accept": "text/html"}


@dataclass
class Seen:
    """View of one page. `kilobytes` and `requests` are those of the first view, over the wire."""

    cold_ms: list[float] = field(default_factory=list)
    warm_ms: list[float] = field(default_factory=list)
    # Warm too, in a tab that shows another page, as after a click: a new tab starts a process of the browser.
    next_ms: list[float] = field(default_factory=list)
    kilobytes: float = 0.0
    requests: int = 0
    # CPU of all processes of the stack for one response, whatever else the machine does.
    cpu_ms: float = 0.0


async def view(browser: Browser, url: str, selector: str) -> Seen:
    """Cold with an empty cache, warm again in the same browser; what is seen is `selector`."""
    seen = Seen()
    for _ in range(LOOKS):
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        await context.add_init_script(_PAINTED % json.dumps(selector.replace(":visible", "")))
        for times in (seen.cold_ms, seen.warm_ms):
            page = await context.new_page()
            session = await context.new_cdp_session(page)
            await session.send("Network.enable")
            sent: list[float] = []
            session.on("Network.loadingFinished", _noting(sent))
            times.append(await _painted(page, url))
            if times is seen.cold_ms:
                seen.kilobytes, seen.requests = sum(sent) / 1000, len(sent)
            await page.close()
        page = await context.new_page()
        await page.goto(urljoin(url, "/settings"))
        seen.next_ms.append(await _painted(page, url))
        await context.close()
    return seen


async def _painted(page: Page, url: str) -> float:
    """Milliseconds to the first row of the page that is opened."""
    await page.goto(url)
    # Without a limit of Playwright's: a row that is not shown would be waited for without an end.
    async with asyncio.timeout(_LOOK_LIMIT_SECONDS):
        return float(await page.evaluate("globalThis.painted"))


def _noting(sent: list[float]) -> Any:
    def note(event: Mapping[str, Any]) -> None:
        sent.append(float(event["encodedDataLength"]))

    return note


async def cpu_of_responses(stack: StackHarness, url: str, responses: int = 20) -> float:
    """Milliseconds of CPU per response."""
    pids = [child.pid for child in stack.stack.children.values() if child.pid]
    async with aiohttp.ClientSession(headers={"Accept": "text/html"}) as session:
        before = sum(usage_of_tree(pid).cpu_seconds for pid in pids)
        for _ in range(responses):
            async with session.get(url) as response:
                await response.read()
    return (sum(usage_of_tree(pid).cpu_seconds for pid in pids) - before) * 1000 / responses


async def responses(url: str, paths: Mapping[str, str]) -> dict[str, tuple[float, float, int]]:
    """By name the median and the worst milliseconds to the whole response, and its status."""
    found = {}
    async with aiohttp.ClientSession(headers=_PART) as session:
        for name, path in paths.items():
            times, status = [], 0
            for _ in range(LOOKS):
                began = time.monotonic()
                async with session.get(url + path) as response:
                    await response.read()
                    status = response.status
                times.append((time.monotonic() - began) * 1000)
            found[name] = (statistics.median(times), max(times), status)
    return found
