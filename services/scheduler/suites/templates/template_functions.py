"""What templates call: filters, tests, the writing of values. All count what they are given and make."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from re import findall
from typing import TypeGuard

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import SandboxedFormatter

from services.scheduler.suites.templates.template_budget import BUDGET, Cost, looped
from services.scheduler.suites.templates.template_growth import Growth, widths_of_format, widths_together


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
