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
    OF_FILTERS,
    OF_METHODS,
    Cost,
    Growth,
    bound_bits,
    looped,
    regex_replace,
    widths_of_format,
    widths_together,
)
from services.scheduler.suites.templates.rewrite import ENTERED, JOINED, LOOPED, TAKEN


class NullWritten(Exception):
    """A template wrote a null, which would show the model the word None."""


def settled(given: tuple[object, ...]) -> tuple[object, ...]:
    """What can be gone through only once becomes a list, so that it can be counted before it is used."""
    return tuple([list(looped(one, Cost(1))) if _is_lazy(one) else one for one in given])


def _is_lazy(value: object) -> TypeGuard[Iterator[object]]:
    return type(value) is not str and isinstance(value, Iterator) and not isinstance(value, LoopContext)


def budgeted(function: Callable[..., object], growth: Growth | None = None) -> Callable[..., object]:
    """A filter or test whose arguments and result count. Jinja gives some their context as first argument."""
    own = int(hasattr(function, "jinja_pass_arg"))

    @wraps(function)
    def bounded(*args: object, **kwargs: object) -> object:
        budget = BUDGET.get()
        budget.step()
        given = settled(args[own:])
        for one in (*given, *kwargs.values()):
            budget.take(one)
        if growth is not None:
            budget.write(growth(*given, **kwargs))
        made = function(*args[:own], *given, **kwargs)
        budget.take(made)
        return made

    return bounded


def format_filter(text: str, *args: object, **kwargs: object) -> object:
    """The filter `format`, which is the operator `%`."""
    if args and kwargs:
        raise TypeError("format takes either values or names with values")
    budget = BUDGET.get()
    characters = budget.take(args) + budget.take(kwargs)
    budget.write(widths_of_format(text) + text.count("%") * characters)
    return text % (kwargs or args)


def written(value: object) -> object:
    """A value as it may stand in a prompt."""
    if type(value) is str:
        BUDGET.get().write(len(value))
        return value
    if value is None:
        raise NullWritten
    if isinstance(value, Undefined):
        return value
    if isinstance(value, Iterator) or callable(value):
        raise TypeError(f"a {type(value).__name__} is no text")
    BUDGET.get().take(value)
    return value


@pass_context
def finalize(_: Context, value: object) -> object:
    """Taken with its context, so that nothing is written while a template is compiled."""
    return written(value)


def taken(value: object) -> object:
    BUDGET.get().take(value)
    return value


def joined(parts: Sequence[object]) -> str:
    return "".join([str(written(part)) for part in parts])


def looped_over(items: Iterable[object], steps: int, characters: int) -> Iterable[object]:
    return looped(items, Cost(steps, characters))


def entered(times: int, steps: int, characters: int) -> None:
    BUDGET.get().repeat(times, Cost(steps, characters))


class BudgetedFormatter(SandboxedFormatter):
    """What `str.format` puts into its braces counts, and a width before it is made."""

    def convert_field(self, value: object, conversion: str | None) -> object:
        BUDGET.get().take(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: object, format_spec: str) -> str:
        budget = BUDGET.get()
        budget.take(value)
        budget.write(widths_together(findall(r"\d+", format_spec)))
        return str(super().format_field(value, format_spec))


# Markup for pages, formatting by terminal width, and what would ask every model something else.
_FILTERS_LEFT_OUT = ("forceescape", "pprint", "random", "urlize", "wordwrap", "xmlattr")
_GLOBALS_LEFT_OUT = ("lipsum",)

_TEXT = frozenset(name for name in dir(str) if not name.startswith("_")) - {
    "encode", "expandtabs", "maketrans", "translate",
}  # fmt: skip
_LIST = frozenset({"copy", "count", "index"})
_DATE = frozenset({"year", "month", "day", "weekday", "isoweekday", "isoformat"})
_TIME = frozenset({"hour", "minute", "second", "microsecond", "isoformat"})
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
# Jinja hands the variables of a loop or block to every call made in it, and takes them off again.
_SCOPES = ("_loop_vars", "_block_vars")
_OBJECTS_OF_TEMPLATES = (LoopContext, Macro, Namespace, Cycler, Joiner)


class BudgetedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which keeps Python out of reach, with a budget that keeps time and memory bounded."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        allowed = _ATTRIBUTES.get(type(obj))
        if allowed is not None:
            return attr in allowed
        return isinstance(obj, _OBJECTS_OF_TEMPLATES) and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: object, /, *args: object, **kwargs: object) -> object:
        budget = BUDGET.get()
        budget.step()
        if isinstance(obj, Macro):
            return super().call(context, obj, *args, **kwargs)
        named = {name: value for name, value in kwargs.items() if name not in _SCOPES}
        if isinstance(obj, BuiltinMethodType):
            args = settled(args)
            budget.take(obj.__self__)
            growth = OF_METHODS.get(obj.__name__)
            if growth is not None:
                budget.write(growth(obj.__self__, *args, **named))
        for given in (*args, *named.values()):
            budget.take(given)
        made: object = super().call(context, obj, *args, **kwargs)
        if type(made) is not Namespace:
            budget.take(made)
        return made

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        budget = BUDGET.get()
        budget.step()
        if isinstance(left, int | float) and isinstance(right, int | float):
            _bound_number(operator, left, right)
            return super().call_binop(context, operator, left, right)
        budget.take(left)
        characters = budget.take(right)
        if operator == "*":
            budget.write(_repeated(left, right))
        if operator == "%" and isinstance(left, str):
            budget.write(widths_of_format(left) + left.count("%") * characters)
        made: object = super().call_binop(context, operator, left, right)
        budget.take(made)
        return made

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is None:
            return None
        assert isinstance(value, BuiltinMethodType)
        text, formatter = str(value.__self__), BudgetedFormatter(self)
        if value.__name__ == "format_map":
            return lambda mapping: formatter.vformat(text, (), mapping)
        return lambda *args, **kwargs: formatter.vformat(text, args, kwargs)


def _bound_number(operator: str, left: float, right: float) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if operator == "*":
            bound_bits(left.bit_length() + right.bit_length())
        if operator == "**":
            bound_bits(left.bit_length() * right)


def _repeated(left: object, right: object) -> int:
    items, times = (right, left) if isinstance(left, int) else (left, right)
    return len(items) * times if isinstance(items, Sized) and isinstance(times, int) else 0


def new_environment() -> BudgetedEnvironment:
    """Without folding of constants, which would reckon while a template is compiled."""
    environment = BudgetedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, optimized=False, finalize=finalize
    )
    filters: dict[str, Callable[..., object]] = {**environment.filters, "format": format_filter}
    filters["regex_replace"] = regex_replace
    for name in _FILTERS_LEFT_OUT:
        del filters[name]
    environment.filters = {name: budgeted(one, OF_FILTERS.get(name)) for name, one in filters.items()}
    environment.filters |= {LOOPED: looped_over, ENTERED: entered, TAKEN: taken, JOINED: joined}
    tests = cast("Mapping[str, Callable[..., object]]", environment.tests)
    environment.tests = {name: budgeted(test) for name, test in tests.items()}
    for name in _GLOBALS_LEFT_OUT:
        del environment.globals[name]
    return environment
