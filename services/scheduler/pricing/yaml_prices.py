"""The price file: read at the start, and again when it changes, since prices do."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from proctor.values.usage import ModelPrice
from services.common.errors import InvalidSetting
from services.common.structured_logs import get_logger
from services.scheduler.pricing.price_list import ANY_REST, PriceList, Prices
from services.scheduler.suites.format.yaml_document import InvalidYaml, Node, YamlDocument, read_yaml

log = get_logger()

SHIPPED = Path(__file__).with_name("prices.yaml")
_FILE_KEYS = ("currency", "as_of", "others", "prices")
_SHIPPED_WORD = "shipped"
_PRICE_KEYS = ("input", "cached_input", "output")
# One of the currency for each token: what costs more is a slip of the pen, or not a finite number.
_MAX_PRICE = 1_000_000
_CURRENCY = re.compile("[A-Z]{3}")


class _Problem(Exception):
    """A problem of a file, as the middle of a sentence."""


class YamlPrices:
    """The prices of a file as it is now; a file that was broken later leaves those from before."""

    def __init__(self, file: Path) -> None:
        """Raises `InvalidSetting`."""
        self._file = file
        self._seen = _state_of(file)
        self._prices = read_prices(file)

    def price_of(self, model: str, *, at_provider: bool = False) -> ModelPrice | None:
        self._look_again()
        return self._prices.price_of(model, at_provider=at_provider)

    def _look_again(self) -> None:
        state = _state_of(self._file)
        if state == self._seen:
            return
        self._seen = state
        try:
            self._prices = read_prices(self._file)
        except InvalidSetting as error:
            log.error("price file cannot be read; the prices from before stay", problem=error.message)
            return
        log.info(
            "prices were read again",
            file=str(self._file),
            models=len(self._prices.prices) + len(self._prices.shipped),
        )


@dataclass(frozen=True, slots=True)
class _File:
    """`takes_shipped`: other models have the prices that come with Proctor."""

    prices: Prices
    currency: str
    takes_shipped: bool


def read_prices(file: Path) -> PriceList:
    """Raises `InvalidSetting`, which says what is wrong with it."""
    own = _read(file)
    if file == SHIPPED:
        return PriceList(shipped=own.prices)
    if not own.takes_shipped:
        return PriceList(own.prices)
    shipped = _read(SHIPPED)
    if own.currency != shipped.currency:
        raise _refusal(
            file, f"the prices of others are in {shipped.currency}, so its currency must be the same"
        )
    return PriceList(own.prices, shipped.prices)


def _read(file: Path) -> _File:
    try:
        return _file(read_yaml(file.read_bytes()))
    except InvalidYaml as error:
        raise _refusal(file, f"line {error.line}: {error.problem}") from error
    except (OSError, _Problem) as error:
        raise _refusal(file, str(error)) from error


def _refusal(file: Path, problem: str) -> InvalidSetting:
    return InvalidSetting(setting="PROCTOR_SCHEDULER_PRICES_FILE", problem=f"{file}: {problem}")


def _state_of(file: Path) -> tuple[int, int] | None:
    """Changes when the file does; None where it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _named(path: tuple[str | int, ...]) -> str:
    return " of ".join(str(part) for part in reversed(path)) or "the file"


def _file(document: YamlDocument) -> _File:
    if document.faults:
        first = document.faults[0]
        raise _Problem(f"{_named(first.path)} in line {first.line}: {first.problem}")
    root = document.root
    if not isinstance(root.content, dict):
        raise _Problem("it must have the keys currency and prices")
    unknown = sorted(root.content.keys() - set(_FILE_KEYS))
    if unknown:
        raise _Problem(f"it has the key {unknown[0]}; known: {', '.join(_FILE_KEYS)}")
    listed = root.child("prices")
    priced = listed.content if listed else None
    if not isinstance(priced, dict):
        raise _Problem("prices must name models, each with its price; for none write prices: {}")
    currency = root.child("currency")
    if currency is None or not _CURRENCY.fullmatch(str(currency.content)):
        raise _Problem("currency must be one name of three capital letters, such as USD")
    unit = _Unit(str(currency.content), _as_of(root))
    prices = {model: _price(model, node, unit) for model, node in priced.items()}
    return _File(prices, unit.currency, takes_shipped=_takes_shipped(root))


@dataclass(frozen=True, slots=True)
class _Unit:
    currency: str
    as_of: str


def _as_of(root: Node) -> str:
    node = root.child("as_of")
    if node is None:
        return ""
    try:
        return date.fromisoformat(str(node.content)).isoformat()
    except ValueError:
        raise _Problem("as_of must be a date such as 2026-09-01") from None


def _takes_shipped(root: Node) -> bool:
    node = root.child("others")
    if node is not None and node.content != _SHIPPED_WORD:
        raise _Problem(f"others must be {_SHIPPED_WORD}: the prices that come with Proctor")
    return node is not None


def _price(model: str, node: Node, unit: _Unit) -> ModelPrice:
    where = f"{model} in line {node.line}"
    if ANY_REST in model.removesuffix(ANY_REST):
        raise _Problem(f"{where}: a {ANY_REST} may only stand at the end")
    if "/" not in model and model != ANY_REST:
        raise _Problem(f"{where}: a model is written as provider/name, all of a provider as provider/*")
    if not isinstance(node.content, dict):
        raise _Problem(f"{where}: the price must have the keys input and output, per million tokens")
    if "currency" in node.content:
        raise _Problem(f"{where}: it has a currency of its own; a price file has one for all")
    unknown = sorted(node.content.keys() - set(_PRICE_KEYS))
    if unknown:
        raise _Problem(f"{where}: it has the key {unknown[0]}; known: {', '.join(_PRICE_KEYS)}")
    missing = [key for key in ("input", "output") if key not in node.content]
    if missing:
        raise _Problem(f"{where}: {missing[0]} is missing")
    numbers = {key: _number(where, key, each) for key, each in node.content.items()}
    return ModelPrice(
        numbers["input"], numbers["output"], numbers.get("cached_input"), unit.currency, unit.as_of
    )


def _number(where: str, key: str, node: Node) -> float:
    """Finite by the reader of the text."""
    number = node.content
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _Problem(f"{where}: {key} is not a number such as 0.25, 10 or 2.5e-3")
    if not 0 <= number <= _MAX_PRICE:
        raise _Problem(f"{where}: {key} is {number}, but must be at least 0 and at most {_MAX_PRICE}")
    return float(number)
