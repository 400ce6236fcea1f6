"""A batch of the official client in a browser: from its list to its output."""

import json

import pytest
from playwright.async_api import expect

from tests.e2e.pages.conftest import Site
from tests.fakes.gateway.openai_client import openai_client
from tests.harness.browser import Looks, tab

pytestmark = pytest.mark.asyncio(loop_scope="session")


def line(number: int) -> str:
    body = {"model": "openai/fake", "messages": [{"role": "user", "content": f"question {number}"}]}
    return json.dumps(
        {"custom_id": f"r-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
    )


async def test_batch_and_its_files_in_every_look(site: Site, looks: Looks) -> None:
    async with openai_client(site.url) as client:
        content = "\n".join(line(number) for number in range(12)).encode()
        given = await client.files.create(file=("twelve.jsonl", content), purpose="batch")
        batch = await client.batches.create(
            input_file_id=given.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
    async with tab(site.browser, site.url) as opened:
        page = opened.page
        await opened.open("/batches")
        await page.locator("table.batches tbody th a").first.click()
        await page.wait_for_url(f"**/batches/{batch.id}")
        # The page renews itself until the batch has ended.
        await expect(page.locator("section[aria-label=Progress] .state")).to_have_text(
            "completed", timeout=60_000
        )
        async with page.expect_download() as started:
            await page.get_by_role("link", name="Output").click()
        path = await (await started.value).path()
        assert len(path.read_text().splitlines()) == 12
        assert opened.errors == []
    for path_of, name in (
        ("/batches", "batches"),
        (f"/batches/{batch.id}", "batch"),
        ("/batches/files", "files"),
    ):
        await site.check_in(looks, path_of, name)
        assert "Batches" in await site.reads_without_scripts("/batches")
