"""Filters of a task that are Python code, called as lm-evaluation-harness calls them."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from services.common.sandboxes.task_code.inside.errors import fact_of

Row = dict[str, Any]
# What of a filter is called: answers by document, and the documents.
Apply = Callable[[list[list[Any]], list[Row]], Any]


class Filter:
    """The base of filters. Steps get the answers to each document, and give as many lists."""

    def __init__(self, **kwargs: object) -> None:
        del kwargs

    def apply(self, resps: Any, docs: Sequence[Row]) -> Any:
        del docs
        return resps


class RegexFilter(Filter):
    """The `group_select`-th match of a pattern; of its groups the first that has text; else `fallback`."""

    def __init__(
        self,
        regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
        group_select: int = 0,
        fallback: str = "[invalid]",
    ) -> None:
        self.regex_pattern = regex_pattern
        self.regex = re.compile(regex_pattern)
        self.group_select = group_select
        self.fallback = fallback

    def apply(self, resps: Any, docs: Sequence[Row]) -> Any:
        del docs
        return [[self._matched(answer) for answer in answers] for answers in resps]

    def _matched(self, answer: object) -> str:
        found = self.regex.findall(answer if isinstance(answer, str) else "")
        try:
            match = found[self.group_select]
        except IndexError:
            return self.fallback
        if isinstance(match, tuple):
            match = next((group for group in match if group), "")
        return match.strip() or self.fallback


def stand_in_filters() -> None:
    """Modules of the package that filters of tasks import from, where it is not installed."""
    modules: dict[str, dict[str, object]] = {
        "lm_eval.api.filter": {"Filter": Filter},
        "lm_eval.api.registry": {"register_filter": _registered},
        "lm_eval.filters.extraction": {"Filter": Filter, "RegexFilter": RegexFilter},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        sys.modules.setdefault(name, module)


def _registered(_: str) -> Callable[[type], type]:
    return lambda each: each


def filter_functions(
    steps: Mapping[str, Sequence[tuple[Any, Row]]], folder: str
) -> dict[str, Callable[[Row], Row]]:
    """By pipeline, a function of a row: `doc`, `answers` by pipeline. Steps are called one after another.

    A step is a class with its options, or a function.
    """
    return {
        key: partial(_filtered, key, [_apply(*step) for step in each], folder) for key, each in steps.items()
    }


def _apply(step: Any, options: Row) -> Apply:
    # A new filter for each answer: one may keep what it saw.
    return (lambda resps, docs: step(**options).apply(resps, docs)) if isinstance(step, type) else step


def _filtered(pipeline: str, steps: Sequence[Apply], folder: str, row: Row) -> Row:
    try:
        found: Any = [[row["answers"][pipeline]]]
        for step in steps:
            found = [list(each) if isinstance(each, tuple) else each for each in step(found, [row["doc"]])]
        [left] = found
        return {"value": left[0] if isinstance(left, list) and len(left) == 1 else left}
    except Exception as error:  # noqa: BLE001  # whatever the task's code raises
        return {"error": fact_of(error, "filter_list", -1, folder)}
