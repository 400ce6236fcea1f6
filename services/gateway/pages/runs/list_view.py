"""View of the list of runs for its templates."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import LIVE_STATES
from proctor.wire.enums import words_of
from services.gateway.pages.filters import ListView, given_filters
from services.gateway.pages.runs_table import RunRow, run_row

STATES = words_of(run_pb2.RunState)


def run_list_view(
    listed: scheduler_pb2.ListRunsResponse, filters: Mapping[str, str], suites: Sequence[str], now: datetime
) -> ListView[RunRow]:
    rows = [run_row(run) for run in listed.runs]
    return ListView(
        path="/runs",
        rows=rows,
        total=listed.total,
        following=listed.next_page_token,
        filters=given_filters(filters),
        now=now,
        live_runs=[row.run_id for row in rows if row.state in LIVE_STATES],
        suites=suites,
    )
