"""A model that neither this machine nor the hub has is refused before anything is installed for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from huggingface_hub import constants

from proctor.stack.errors import ModelUnusable
from proctor.stack.vllm.hub_model import refuse_missing


@pytest_asyncio.fixture(autouse=True)
async def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[web.AppRunner]:
    """A hub with the one model a/known, which wants a token for a/gated; the cache is empty."""

    async def found(request: web.Request) -> web.Response:
        name, token = request.match_info["name"], request.headers.get("Authorization")
        is_gated = name == "gated" and token != "Bearer planted-token"
        return web.Response(status=401 if is_gated else 200 if name in {"known", "gated"} else 404)

    app = web.Application()
    app.router.add_get("/api/models/a/{name}", found)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{runner.addresses[0][1]}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield runner
    await runner.cleanup()


async def asked(hub_id: str, **environ: str) -> None:
    await asyncio.to_thread(refuse_missing, hub_id, environ)


async def test_hub_is_asked_with_the_token_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    await asked("a/known")
    for hub_id in ("a/unknown", "a/gated"):
        with pytest.raises(ModelUnusable, match=f"has no model {hub_id} that this machine may read: correct"):
            await asked(hub_id)
    monkeypatch.setenv("HF_TOKEN", "planted-token")
    await asked("a/gated")


async def test_cache_is_enough_where_no_hub_answers(tmp_path: Path, hub: web.AppRunner) -> None:
    await hub.cleanup()
    with pytest.raises(ModelUnusable, match="not on this machine, and the hub does not answer"):
        await asked("a/known")
    await asked("a/known", VLLM_USE_MODELSCOPE="True")
    folder = tmp_path / "models--a--known"
    (folder / "snapshots" / "1").mkdir(parents=True)
    (folder / "snapshots" / "1" / "config.json").write_text("{}")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("1")
    await asked("a/known")


async def test_offline_machine_asks_no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnusable, match="HF_HUB_OFFLINE"):
        await asked("a/known")
