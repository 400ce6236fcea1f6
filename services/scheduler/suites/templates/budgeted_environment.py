"""The Jinja environment of templates: only the row is reachable, and all work counts against the budget."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import date, datetime, time
from functools import wraps
from re import findall
from types import BuiltinMethodType
from typing import TypeGuard, cast

from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from services.scheduler.suites.templates.budget import (
    BUDGET,
    FILTER_GROWTH,
    METHOD_GROWTH,
    Cost,
    Growth,
    charged_per_item,
    check_bits,
    regex_replace,
    widths_of_format,
    widths_together,
)
from services.scheduler.suites.templates.cost_writer import CHARGED, JOIN, LOOP, MACRO
from services.scheduler.suites.templates.errors import NullWritten
from services.scheduler.suites.templates.literals import parse_literal

# Markup for pages, formatting by terminal width, and random output, which would differ from model to model.
_FILTERS_LEFT_OUT = ("forceescape", "pprint", "random", "urlize", "wordwrap", "xmlattr")
_GLOBALS_LEFT_OUT = ("lipsum",)
_LIST = frozenset({"copy", "count", "index"})
_DATE = frozenset({"year", "month", "day", "weekday", "isoweekday", "isoformat"})
_TIME = frozenset({"hour", "minute", "second", "microsecond", "isoformat"})
# Jinja adds the variables of a loop or block to every call inside it, and removes them again.
_SCOPES = ("_loop_vars", "_block_vars")
_TEMPLATE_OBJECTS = (LoopContext, Macro, Namespace, Cycler, Joiner)


def materialized(given: tuple[object, ...]) -> tuple[object, ...]:
    """Turns iterators into lists, so that they can be counted before they are used."""
    return tuple([list(charged_per_item(one, Cost(1))) if _is_lazy(one) else one for one in given])


def _is_lazy(value: object) -> TypeGuard[Iterator[object]]:
    return type(value) is not str and isinstance(value, Iterator) and not isinstance(value, LoopContext)


def budgeted(function: Callable[..., object], growth: Growth | None = None) -> Callable[..., object]:
    """Wraps a filter or test so that its arguments and its result count against the budget."""
    # Jinja passes some functions its own context as the first argument.
    own = int(hasattr(function, "jinja_pass_arg"))

    @wraps(function)
    def bounded(*args: object, **kwargs: object) -> object:
        budget = BUDGET.get()
        budget.charge_steps()
        given = materialized(args[own:])
        for one in (*given, *kwargs.values()):
            budget.charge(one)
        if growth is not None:
            budget.charge_characters(growth(*given, **kwargs))
        made = function(*args[:own], *given, **kwargs)
        budget.charge(made)
        return made

    return bounded


def format_filter(text: str, *args: object, **kwargs: object) -> object:
    """The filter `format`, equivalent to the operator `%`."""
    if args and kwargs:
        raise TypeError("format takes either values or names with values")
    budget = BUDGET.get()
    characters = budget.charge(args) + budget.charge(kwargs)
    budget.charge_characters(widths_of_format(text) + text.count("%") * characters)
    return text % (kwargs or args)


def written(value: object) -> object:
    """Returns a value that may be written into a prompt. Raises `NullWritten`, `TypeError`."""
    if type(value) is str:
        BUDGET.get().charge_characters(len(value))
        return value
    if value is None:
        raise NullWritten
    if isinstance(value, Undefined):
        return value
    if isinstance(value, Iterator) or callable(value):
        raise TypeError(f"a {type(value).__name__} is not text")
    BUDGET.get().charge(value)
    return value


@pass_context
def finalize(_: Context, value: object) -> object:
    """Called by Jinja on every output. It takes the context, so Jinja does not call it at compile time."""
    return written(value)


def charged(value: object) -> object:
    BUDGET.get().charge(value)
    return value


def joined(parts: Sequence[object]) -> str:
    return "".join([str(written(part)) for part in parts])


def charged_loop(items: Iterable[object], steps: int, characters: int) -> Iterable[object]:
    return charged_per_item(items, Cost(steps, characters))


def charged_macro(times: int, steps: int, characters: int) -> None:
    BUDGET.get().charge_times(times, Cost(steps, characters))


class BudgetedFormatter(SandboxedFormatter):
    """`str.format` with its values counted, and widths counted before they are padded."""

    def convert_field(self, value: object, conversion: str | None) -> object:
        BUDGET.get().charge(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: object, format_spec: str) -> str:
        budget = BUDGET.get()
        budget.charge(value)
        budget.charge_characters(widths_together(findall(r"\d+", format_spec)))
        return str(super().format_field(value, format_spec))


_TEXT = frozenset(name for name in dir(str) if not name.startswith("_")) - {
    "encode", "expandtabs", "maketrans", "translate",
}  # fmt: skip
_ATTRIBUTES: Mapping[type, frozenset[str]] = {
    str: _TEXT,
    Markup: _TEXT,
    list: _LIST,
    tuple: _LIST,
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    float: frozenset({"is_integer"}),
    date: _DATE,
    time: _TIME,
    datetime: _DATE | _TIME | {"date", "time"},
}


class BudgetedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox isolates Python; the budget bounds time and memory."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        allowed = _ATTRIBUTES.get(type(obj))
        if allowed is not None:
            return attr in allowed
        return isinstance(obj, _TEMPLATE_OBJECTS) and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: object, /, *args: object, **kwargs: object) -> object:
        budget = BUDGET.get()
        budget.charge_steps()
        if isinstance(obj, Macro):
            return super().call(context, obj, *args, **kwargs)
        named = {name: value for name, value in kwargs.items() if name not in _SCOPES}
        if isinstance(obj, BuiltinMethodType):
            args = materialized(args)
            budget.charge(obj.__self__)
            growth = METHOD_GROWTH.get(obj.__name__)
            if growth is not None:
                budget.charge_characters(growth(obj.__self__, *args, **named))
        for given in (*args, *named.values()):
            budget.charge(given)
        made: object = super().call(context, obj, *args, **kwargs)
        if type(made) is not Namespace:
            budget.charge(made)
        return made

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        budget = BUDGET.get()
        budget.charge_steps()
        if isinstance(left, int | float) and isinstance(right, int | float):
            _check_number(operator, left, right)
            return super().call_binop(context, operator, left, right)
        budget.charge(left)
        characters = budget.charge(right)
        if operator == "*":
            budget.charge_characters(_repeated(left, right))
        if operator == "%" and isinstance(left, str):
            budget.charge_characters(widths_of_format(left) + left.count("%") * characters)
        made: object = super().call_binop(context, operator, left, right)
        budget.charge(made)
        return made

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is None:
            return None
        assert isinstance(value, BuiltinMethodType)
        text, formatter = str(value.__self__), BudgetedFormatter(self)
        if value.__name__ == "format_map":
            return lambda mapping: formatter.vformat(text, (), mapping)
        return lambda *args, **kwargs: formatter.vformat(text, args, kwargs)


def _check_number(operator: str, left: float, right: float) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if operator == "*":
            check_bits(left.bit_length() + right.bit_length())
        if operator == "**":
            check_bits(left.bit_length() * right)


def _repeated(left: object, right: object) -> int:
    items, times = (right, left) if isinstance(left, int) else (left, right)
    return len(items) * times if isinstance(items, Sized) and isinstance(times, int) else 0


def new_environment() -> BudgetedEnvironment:
    """Constant folding is off: it would evaluate expressions at compile time, without a budget."""
    environment = BudgetedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, optimized=False, finalize=finalize
    )
    filters: dict[str, Callable[..., object]] = {**environment.filters, "format": format_filter}
    filters |= {"regex_replace": regex_replace, "parse": parse_literal}
    for name in _FILTERS_LEFT_OUT:
        del filters[name]
    environment.filters = {name: budgeted(one, FILTER_GROWTH.get(name)) for name, one in filters.items()}
    environment.filters |= {LOOP: charged_loop, MACRO: charged_macro, CHARGED: charged, JOIN: joined}
    tests = cast("Mapping[str, Callable[..., object]]", environment.tests)
    environment.tests = {name: budgeted(test) for name, test in tests.items()}
    for name in _GLOBALS_LEFT_OUT:
        del environment.globals[name]
    return environment
