"""Ids of runs in paths, as dependencies. An id of another form raises 404."""

import uuid
from typing import Annotated

from fastapi import Depends, Path

from services.gateway.errors.gateway_errors import RunNotFound
from services.gateway.errors.run_ids import run_id_of


def _job_id(job_id: Annotated[str, Path(description="UUID")]) -> str:
    try:
        return str(uuid.UUID(job_id))
    except ValueError as error:
        raise RunNotFound(run_id=job_id) from error


def _benchmark_run_id(benchmark_id: Annotated[str, Path(description='"bm_…"', max_length=255)]) -> str:
    return run_id_of(benchmark_id)


JobId = Annotated[str, Depends(_job_id)]
BenchmarkRunId = Annotated[str, Depends(_benchmark_run_id)]
