"""The price file: what it may say, what is wrong with it in one sentence, and how it changes under way."""

from datetime import date
from os import utime
from pathlib import Path

import pytest

from proctor.values.usage import ModelPrice
from services.common.errors import InvalidSetting
from services.scheduler.pricing.yaml_prices import YamlPrices, read_prices
from services.scheduler.settings import SchedulerSettings

GOOD = """
currency: EUR
prices:
  "openai/example": {input: 2.5, cached_input: 1.25, output: 10}
  "openai/*": {input: 1, output: 4}
"""


def price_file(folder: Path, text: str) -> Path:
    file = folder / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def changed(file: Path, text: str) -> None:
    """As after a while: a test writes faster than some file systems tell times."""
    modified = file.stat().st_mtime_ns
    file.write_text(text, encoding="utf-8")
    utime(file, ns=(modified + 10**9, modified + 10**9))


def test_prices_are_read_per_million_tokens_in_the_currency_of_the_file(tmp_path: Path) -> None:
    prices = read_prices(price_file(tmp_path, GOOD))
    assert prices.price_of("openai/example") == ModelPrice(2.5, 10, 1.25, "EUR")
    assert prices.price_of("openai/other") == ModelPrice(1, 4, None, "EUR")
    assert prices.price_of("grok/other") is None


def test_small_prices_may_have_an_exponent(tmp_path: Path) -> None:
    price = read_prices(price_file(tmp_path, GOOD.replace("input: 1,", "input: 2.5e-3,"))).price_of(
        "openai/x"
    )
    assert price == ModelPrice(0.0025, 4, None, "EUR")


def test_list_prices_come_with_a_date_and_hold_at_the_provider_only() -> None:
    shipped = read_prices(SchedulerSettings().prices_file)
    price = shipped.price_of("openai/gpt-4o-mini", at_provider=True)
    assert price is not None
    assert (price.currency, date.fromisoformat(price.as_of).year) == ("USD", 2026)
    assert shipped.price_of("openai/gpt-4o-mini") is None
    for model in ("openai/gpt-4o-mini-2024-07-18", "anthropic/claude-haiku-4-5-20251001", "grok/grok-4"):
        assert shipped.price_of(model, at_provider=True), model
    # Names that begin alike and cost something else.
    for model in ("openai/gpt-4o-audio-preview", "openai/gpt-5-pro", "openai/o3-pro", "vllm/starter"):
        assert shipped.price_of(model, at_provider=True) is None, model


def test_own_prices_come_before_those_that_are_shipped(tmp_path: Path) -> None:
    own = GOOD.replace("EUR", "USD\nas_of: 2026-11-05").replace('"openai/*"', '"openai/gpt-4*"')
    alone = read_prices(price_file(tmp_path, own))
    assert alone.price_of("anthropic/claude-opus-5", at_provider=True) is None
    beside = read_prices(price_file(tmp_path, f"{own}\nothers: shipped"))
    assert beside.price_of("anthropic/claude-opus-5", at_provider=True)
    assert beside.price_of("anthropic/claude-opus-5") is None
    # Also before a longer name of the shipped list.
    assert beside.price_of("openai/gpt-4o", at_provider=True) == ModelPrice(1, 4, None, "USD", "2026-11-05")


def test_prices_of_another_currency_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="the prices of others are in USD"):
        read_prices(price_file(tmp_path, f"{GOOD}\nothers: shipped"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prices: {a/b: {input: 1}}", "a/b in line 1: output is missing"),
        ("prices: {a/b: {output: 1}}", "a/b in line 1: input is missing"),
        (
            "prices: {a/b: {input: -1, output: 1}}",
            "a/b in line 1: input is -1, but must be at least 0 and at most 1000000",
        ),
        (
            "prices: {a/b: {input: free, output: 1}}",
            "a/b in line 1: input is not a number such as 0.25, 10 or 2.5e-3",
        ),
        (
            "prices: {a/b: {input: '2', output: 1}}",
            "a/b in line 1: input is not a number such as 0.25, 10 or 2.5e-3",
        ),
        (
            "prices: {a/b: {input: true, output: 1}}",
            "a/b in line 1: input is not a number such as 0.25, 10 or 2.5e-3",
        ),
        (
            "prices: {a/b: {input: 1, output: null}}",
            "a/b in line 1: output is not a number such as 0.25, 10 or 2.5e-3",
        ),
        (
            "prices: {a/b: {input: 1e308, output: 1}}",
            "a/b in line 1: input is not a number such as 0.25, 10 or 2.5e-3",
        ),
        (
            "prices: {a/b: {input: 1, output: 1.0e+308}}",
            "a/b in line 1: output is 1e+308, but must be at least 0 and at most 1000000",
        ),
        (
            "prices: {a/b: {input: 1, output: 1, cached_input: 1000001}}",
            "a/b in line 1: cached_input is 1000001, but must be at least 0 and at most 1000000",
        ),
        (
            "prices: {a/b: {input: .nan, output: 1}}",
            "input of a/b of prices in line 1: .nan is not a finite number",
        ),
        (
            "prices: {a/b: {input: 1, output: .inf}}",
            "output of a/b of prices in line 1: .inf is not a finite number",
        ),
        (
            "prices: {a/b: {input: 1, output: 1, cached: 1}}",
            "a/b in line 1: it has the key cached; known: input, cached_input, output",
        ),
        (
            "prices: {a/b: {input: 1, output: 1, currency: EUR}}",
            "a/b in line 1: it has a currency of its own; a price file has one for all",
        ),
        (
            "prices:\n  a/b: {input: 1, output: 1}\n  a/b: {input: 2, output: 1}",
            "a/b of prices in line 3: this key is there twice",
        ),
        (
            "prices: {a/b: 3}",
            "a/b in line 1: the price must have the keys input and output, per million tokens",
        ),
        ("prices: {a/*b: {input: 1, output: 1}}", "a/*b in line 1: a * may only stand at the end"),
        (
            "prices: {gpt: {input: 1, output: 1}}",
            "gpt in line 1: a model is written as provider/name, all of a provider as provider/*",
        ),
        ("prices: [a/b]", "prices must name models, each with its price; for none write prices: {}"),
        ("prizes: {}", "it has the key prizes; known: currency, as_of, others, prices"),
        ("prices: {}\nas_of: 31.12.2026", "as_of must be a date such as 2026-09-01"),
        ("prices: {}\nothers: all", "others must be shipped: the prices that come with Proctor"),
    ],
)
def test_a_gap_is_reported_in_one_sentence_that_names_model_and_key(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = price_file(tmp_path, f"{text}\ncurrency: USD\n")
    with pytest.raises(InvalidSetting) as refused:
        read_prices(file)
    assert refused.value.message == f"PROCTOR_SCHEDULER_PRICES_FILE cannot be used: {file}: {problem}."


@pytest.mark.parametrize(
    "currency", ["", "currency: [USD, EUR]", "currency: dollars", "currency: usd", "currency: 5"]
)
def test_a_file_has_one_currency(tmp_path: Path, currency: str) -> None:
    file = price_file(tmp_path, f"prices: {{}}\n{currency}")
    with pytest.raises(InvalidSetting, match="three capital letters, such as USD"):
        read_prices(file)


@pytest.mark.parametrize("text", ["", "- a", "prices: {", "\x00"])
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSetting):
        read_prices(price_file(tmp_path, text))


def test_a_file_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"nowhere\.yaml"):
        YamlPrices(tmp_path / "nowhere.yaml")


def test_prices_follow_the_file_and_a_broken_one_leaves_those_from_before(tmp_path: Path) -> None:
    file = price_file(tmp_path, GOOD)
    prices = YamlPrices(file)
    changed(file, GOOD.replace("output: 4", "output: 5"))
    assert prices.price_of("openai/other") == ModelPrice(1, 5, None, "EUR")
    changed(file, GOOD.replace("output: 4", "output: cheap"))
    assert prices.price_of("openai/other") == ModelPrice(1, 5, None, "EUR")
    file.unlink()
    assert prices.price_of("openai/other") == ModelPrice(1, 5, None, "EUR")
    file.write_text(GOOD)
    assert prices.price_of("openai/other") == ModelPrice(1, 4, None, "EUR")
