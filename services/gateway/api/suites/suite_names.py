"""Names of suites that filter runs: they mean all versions of a suite."""

from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.backends.backends import Scheduler
from services.gateway.errors.gateway_errors import NoSuchSuite, SuiteVersionNamed
from services.gateway.http.fields import Text

_MAX_NAMED = 20
_DATASET_PREFIX = "ds_"
_RULE = "All versions. A suite without runs has an empty list; an unknown one is an error (404)"


def without_version(suite: str) -> str:
    """The name itself. Raises `SuiteVersionNamed` for a name with a version."""
    name, mark, _ = suite.partition("@")
    if mark:
        raise SuiteVersionNamed(field="suite", given=suite, suite=name)
    return suite


SuiteName = Annotated[Text, AfterValidator(without_version)]
SuiteFilter = Annotated[SuiteName, Query(description=_RULE)]


async def check_known_suite(scheduler: Scheduler, suite: str) -> None:
    """Raises an error for a suite or data set that does not exist.

    Only for empty lists: runs of a suite that was deleted are still listed.
    """
    if suite.startswith(_DATASET_PREFIX):
        await scheduler.datasets.GetDataset(dataset_pb2.GetDatasetRequest(dataset_id=suite))
        return
    response = await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())
    known = [listed.suite for listed in response.suites]
    if suite and suite not in known:
        more = len(known) - _MAX_NAMED
        named = ", ".join(known[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise NoSuchSuite(suite=suite, supported=named or "none")
