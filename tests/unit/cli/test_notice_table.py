"""What `proctor notices sent` shows: a long problem leaves each column its words."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from proctor.cli.notices import print_notices
from proctor.v1 import notice_service_pb2 as notice_pb2

TEXT = "The run of openai/judge on correctness of openai/fake on whoami@1 is completed."
PROBLEM = "10.0.0.3 is not public; the operator has to allow it."


@pytest.mark.parametrize("width", [80, 120])
def test_times_are_whole_and_attempts_are_counted(width: int) -> None:
    notice = notice_pb2.Notice(text=TEXT, attempts=1, problem=PROBLEM)
    notice.created_at.FromDatetime(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    notice.next_try_at.FromDatetime(datetime(2026, 1, 2, 3, 5, tzinfo=UTC))
    shown = io.StringIO()
    print_notices(Console(file=shown, width=width), notice_pb2.ListNoticesResponse(notices=[notice]))
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    starts = {line.split()[0] for line in lines if line.strip()}
    assert {"2026-01-02", "03:04:05"} <= starts
    assert any("no, after 1 attempt:" in line for line in lines)
    # Title, head, and at most six lines of each column.
    assert len(lines) <= 10
