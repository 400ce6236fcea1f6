"""Chromium, as users have it: pages of a gateway, and what must hold on each of them."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright

CLOSE_LIMIT_SECONDS = 30.0
CHECK_LIMIT_SECONDS = 60.0

HEIGHT = 900
Theme = Literal["light", "dark"]
# Root has no sandbox; the pages are our own.
_ARGUMENTS = ["--no-sandbox"]
# A run of axe reports what it cannot decide too; only what is wrong counts.
_RULES = {"resultTypes": ["violations"]}


@dataclass(frozen=True)
class Look:
    """How a page is looked at."""

    width: int = 1440
    theme: Theme = "light"
    has_scripts: bool = True


Looks = Sequence[Look]
EVERY_LOOK = tuple(Look(width, theme) for width in (1440, 390) for theme in ("light", "dark"))
# axe takes a second of CPU a page: `make test` looks once; tabs of other tests are wide and light.
QUICK_LOOKS = (Look(390, "dark"),)
# For `parametrize`.
EACH_LOOK = tuple(
    pytest.param(look, marks=[] if look in QUICK_LOOKS else [pytest.mark.thorough]) for look in EVERY_LOOK
)


@dataclass
class Tab:
    """A page of the gateway at `url`, and what its console said."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def look(self, look: Look) -> None:
        """How all is looked at that is opened from now on."""
        await self.page.set_viewport_size({"width": look.width, "height": HEIGHT})
        await self.page.emulate_media(color_scheme=look.theme)

    async def take_picture(self, path: Path) -> None:
        """The whole page, as a JPEG: a PNG takes twice the CPU. `path` has no suffix."""
        await self.page.screenshot(
            path=path.with_name(f"{path.name}.jpeg"), type="jpeg", quality=80, full_page=True
        )

    async def overflow(self) -> int:
        """How many pixels are outside of the window."""
        async with asyncio.timeout(CHECK_LIMIT_SECONDS):
            too_wide: int = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return too_wide

    async def check(self) -> None:
        """No console error, nothing wider than the window, nothing that axe finds."""
        assert self.errors == []
        too_wide = await self.overflow()
        assert too_wide <= 0, f"{too_wide} pixels are outside of the window"
        # Scripts in a page have no time limit of Playwright's.
        async with asyncio.timeout(CHECK_LIMIT_SECONDS):
            found = await Axe().run(self.page, options=_RULES)
        assert found.violations_count == 0, found.generate_report()


def chromium_path() -> str:
    """Debian's. The tests fail without it.

    The headless shell is the same engine without windows, which take six times the CPU of a tab.
    """
    found = filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser")))
    path = next(found, None)
    assert path, "There is no chromium: apt-get install -y chromium-headless-shell"
    return path


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=_ARGUMENTS)
        try:
            yield browser
        finally:
            async with asyncio.timeout(CLOSE_LIMIT_SECONDS):
                await browser.close()


@asynccontextmanager
async def tab(browser: Browser, url: str, look: Look | None = None) -> AsyncIterator[Tab]:
    """A tab of a browser of its own, without cookies of others."""
    chosen = look or Look()
    context = await browser.new_context(
        viewport={"width": chosen.width, "height": HEIGHT},
        color_scheme=chosen.theme,
        java_script_enabled=chosen.has_scripts,
    )
    try:
        yield await tab_in(context, url)
    finally:
        async with asyncio.timeout(CLOSE_LIMIT_SECONDS):
            await context.close()


async def tab_in(context: BrowserContext, url: str) -> Tab:
    """One more tab of the same browser."""
    opened = Tab(await context.new_page(), url)

    def collect(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            opened.errors.append(message.text)

    opened.page.on("console", collect)
    opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
    return opened
