"""Versions of suites where runs are looked for: boards, histories and comparisons are of a whole suite.
Suites that a request over HTTP names to look for runs: one rule, whatever it looks for.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator

from services.gateway.backends.scheduler import SchedulerBackend
from services.gateway.errors.gateway_errors import NoSuchSuite, SuiteVersionNamed
from services.gateway.http.fields import Text


def of_all_versions(suite: str) -> str:
    """The name as it is; runs of other versions stand beside each other, and each says its own."""
    name, mark, _ = suite.partition("@")
    if mark:
        raise SuiteVersionNamed(field="suite", given=suite, suite=name)
    return suite


_MOST_NAMED = 20
_OF_DATASETS = "ds_"
_RULE = "Of all versions. A suite without runs has none to show; one that does not exist is refused (404)"

SuiteName = Annotated[Text, AfterValidator(of_all_versions)]
SuiteFilter = Annotated[SuiteName, Query(description=_RULE)]


async def refuse_unknown(scheduler: SchedulerBackend, suite: str) -> None:
    """Asked where nothing was found: runs of a suite that was removed are still shown.

    A data set in the place of a suite is refused by whoever keeps it.
    """
    if suite.startswith(_OF_DATASETS):
        await scheduler.get_dataset(suite)
        return
    known = [listed.suite for listed in await scheduler.list_suites()]
    if suite and suite not in known:
        raise NoSuchSuite(suite=suite, supported=_listed(known))


def _listed(names: Sequence[str]) -> str:
    """As many as a sentence can hold."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "") or "none"
