"""Which price is a model's, and what tokens cost by it: the same in both services that compute it."""

import random
from dataclasses import astuple, replace

import pytest

from proctor.values.providers.pool import Pool, Provider
from proctor.values.usage import ModelPrice, TokenUsage
from proctor.values.usage import ModelPrice as RecordedPrice
from proctor.values.usage import TokenUsage as RecordedTokens
from services.results.runs.postgres import PRICE
from services.scheduler.pricing.price_list import PriceList
from services.scheduler.pricing.resolve_price import ResolvePrice
from services.scheduler.runs.lifecycle.postgres_rows import from_json


def test_the_longest_match_wins_and_the_exact_name_before_all() -> None:
    names = ("*", "openai/*", "openai/gpt-*", "openai/gpt-5", "openai/gpt-5-mini*")
    prices = {name: ModelPrice(number, number) for number, name in enumerate(names)}
    listed = PriceList(prices)
    asked = ("grok/x", "openai/o", "openai/gpt-4", "openai/gpt-5", "openai/gpt-5-mini-2", "openai/gpt-50")
    found = [listed.price_of(model) for model in asked]
    assert [price.input_per_million for price in found if price] == [0, 1, 2, 3, 4, 2]


def test_list_price_holds_where_the_provider_itself_is_asked() -> None:
    listed = PriceList(shipped={"openai/gpt": ModelPrice(1, 1)})

    def price_at(base_url: str, prices: PriceList = listed, ordered: str = "") -> ModelPrice | None:
        pool = Pool("remote", "openai", 8, (), Provider("openai", base_url))
        return ResolvePrice(prices, (pool,)).price_of("openai/gpt", ordered, None)

    for own in ("https://api.openai.com/v1", "https://api.openai.com/v1/"):
        assert price_at(own) == ModelPrice(1, 1)
        assert price_at(own, ordered="http://other:1/v1") is None
    assert price_at("http://own:8000/v1") is None
    named = replace(listed, prices={"openai/*": ModelPrice(2, 2)})
    assert price_at("http://own:8000/v1", named) == price_at(own, named) == ModelPrice(2, 2)


def test_a_name_without_a_star_is_no_beginning() -> None:
    assert PriceList({"openai/gpt": ModelPrice(1, 1)}).price_of("openai/gpt-5") is None


@pytest.mark.parametrize(
    ("cached_input", "cost"), [(None, 1000 * 2 + 100 * 10), (0.5, 600 * 2 + 400 * 0.5 + 100 * 10)]
)
def test_cached_prompt_tokens_cost_what_the_price_says_of_them(
    cached_input: float | None, cost: float
) -> None:
    """Reasoning is a part of what was generated, and is not paid twice."""
    price = ModelPrice(2, 10, cached_input)
    assert price.cost(TokenUsage(1000, 100, 400, 90)) == pytest.approx(cost / 1e6)


def test_the_scheduler_keeps_to_the_cost_that_results_shows() -> None:
    chance = random.Random(7)
    for _ in range(200):
        cached = chance.choice([None, chance.uniform(0, 5)])
        price = ModelPrice(chance.uniform(0, 20), chance.uniform(0, 90), cached, "EUR")
        usage = TokenUsage(*(chance.randint(0, 10**9) for _ in range(4)))
        recorded = RecordedPrice(*astuple(price)).cost(RecordedTokens(*astuple(usage)))
        assert recorded == price.cost(usage)


@pytest.mark.parametrize("cached", ["null", "0", "3"])
def test_a_whole_price_as_postgres_returns_it_counts_like_any_other(cached: str) -> None:
    whole = 10**308
    text = (
        f'{{"input_per_million": {whole}, "output_per_million": 1, "cached_input_per_million": {cached}, '
        '"currency": "EUR"}'
    )
    reported, recorded = from_json(ModelPrice, text), PRICE.validate_json(text)
    assert reported is not None
    assert recorded is not None
    assert astuple(reported) == astuple(recorded)
    assert {type(each) for each in astuple(reported)[:2]} == {float}
    assert reported.cost(TokenUsage(10**9, 5)) == recorded.cost(RecordedTokens(10**9, 5))
