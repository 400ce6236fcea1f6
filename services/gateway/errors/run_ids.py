"""Ids of runs as clients know them: "bm_" or "batch_" and the 32 hexadecimal digits of the UUID."""

import re
import uuid

from services.gateway.errors.gateway_errors import DatasetRunNotFound

_PREFIX = "bm_"
_FORM = re.compile(f"{_PREFIX}[0-9a-f]{{32}}")


def benchmark_id(run_id: str) -> str:
    return f"{_PREFIX}{uuid.UUID(run_id).hex}"


def batch_id(run_id: str) -> str:
    return f"batch_{uuid.UUID(run_id).hex}"


def run_id_of(given: str) -> str:
    """The UUID of a "bm_…". Raises `DatasetRunNotFound` for any other form."""
    if not _FORM.fullmatch(given):
        raise DatasetRunNotFound(benchmark_id=given)
    return str(uuid.UUID(given.removeprefix(_PREFIX)))
