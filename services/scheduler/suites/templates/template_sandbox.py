"""The Jinja of templates: nothing outside the row is in reach, and all that is made counts."""

from collections.abc import Callable, Mapping, Sized
from datetime import date, datetime, time
from types import BuiltinMethodType
from typing import cast

from jinja2 import StrictUndefined
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from services.scheduler.suites.templates.template_budget import BUDGET, bound_bits
from services.scheduler.suites.templates.template_functions import (
    BudgetedFormatter,
    budgeted,
    entered,
    finalize,
    format_filter,
    joined,
    looped_over,
    settled,
    taken,
)
from services.scheduler.suites.templates.template_growth import OF_FILTERS, OF_METHODS, widths_of_format
from services.scheduler.suites.templates.template_regex import regex_replace
from services.scheduler.suites.templates.template_rewrite import ENTERED, JOINED, LOOPED, TAKEN

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
