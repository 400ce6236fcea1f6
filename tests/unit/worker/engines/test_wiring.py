"""Engines are made for the servers and with the keys that the pool allows."""

import pytest

from proctor.values.providers.pool import Pool, Provider
from proctor.values.sample import ChatMessage, Prompt
from services.common.clock import SystemClock
from services.worker.engines.engine import Sampling
from services.worker.engines.errors import ModelRefused, UnsupportedRequest
from services.worker.engines.wiring import engines_by_url, make_engine, make_rate_limiters
from services.worker.settings import WorkerSettings


@pytest.mark.parametrize(
    ("base_url", "name"), [("https://api.openai.com/v1", "OpenAI"), ("https://api.x.ai/v1", "xAI")]
)
async def test_a_pool_of_a_known_server_reports_a_missing_key(base_url: str, name: str) -> None:
    pool = Pool("remote", "openai", 8, (), Provider("openai", base_url, "PROCTOR_TEST_NO_SUCH_KEY"))
    engine = make_engine(pool, WorkerSettings(pool="remote"), make_rate_limiters(pool, SystemClock()))
    with pytest.raises(ModelRefused, match=f"API key not configured for {name}: set PROCTOR_TEST_NO_SUCH"):
        await engine.generate("openai/o", Prompt(messages=(ChatMessage("user", "Hi"),)), Sampling(8))
    await engine.close()


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:21998/internal/metadata?x=",
        "http://inside:8000",
        "http://user@inside:8000/v1",
        "http://inside:8001/v1",
        "file:///etc/passwd",
    ],
)
async def test_a_shard_cannot_name_a_server_that_is_not_allowed(base_url: str) -> None:
    """Any process may have published it: the scheduler is not asked."""
    pool = Pool("remote", "openai", 8, (), Provider("openai", "http://own:8000/v1", ""))
    settings = WorkerSettings(allowed_base_urls="http://inside:8000/v1")
    make = engines_by_url(pool, settings, make_rate_limiters(pool, SystemClock()))
    assert make
    with pytest.raises(UnsupportedRequest, match="PROCTOR_ALLOWED_BASE_URLS"):
        make(base_url)
    await make("http://inside:8000/v1/team").close()
