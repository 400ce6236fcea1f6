"""The id of a run over a data set as its clients know it: "bm_" and the digits of the run's UUID."""

import re
import uuid

from services.gateway.errors.gateway_errors import DatasetRunNotFound

_PREFIX = "bm_"
_FORM = re.compile(f"{_PREFIX}[0-9a-f]{{32}}")


def benchmark_id(run_id: str) -> str:
    return f"{_PREFIX}{uuid.UUID(run_id).hex}"


def run_id_of(given: str) -> str:
    """A name that no run can have names no run."""
    if not _FORM.fullmatch(given):
        raise DatasetRunNotFound(benchmark_id=given)
    return str(uuid.UUID(given.removeprefix(_PREFIX)))
