"""Page tokens of the scheduler's lists: those that it wrote are read, any other one is refused."""

import os
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from services.common.errors import InvalidPageToken
from services.common.requests.page_tokens import list_token, read_list_token, write_page_token

CASES = int(os.environ.get("PROCTOR_PROPERTY_CASES", "100"))
# A hundred thousand cases take longer than any other test.
pytestmark = pytest.mark.timeout(600 + CASES // 20)
drawn = settings(max_examples=CASES, deadline=None)
# A table of all characters takes hypothesis seconds, so few are drawn beyond these.
TEXT = some.text(some.characters(max_codepoint=0x2FFF) | some.sampled_from("\U0001f600\U0010ffff"))
RUN = "6c3a2f4e-0000-4000-8000-000000000001"
RUNS = "runs"
NOW = "2026-01-01T00:00:00+00:00"


def test_token_is_read_as_it_was_written() -> None:
    at = datetime(2026, 6, 1, 12, tzinfo=UTC)
    assert read_list_token(RUNS, list_token(RUNS, at, RUN, 7)) == (at, RUN, 7)


@pytest.mark.parametrize(
    ("time", "total"),
    [
        (NOW, 10**30),
        (NOW, 2**31),
        (NOW, 2**63),
        (NOW, -5),
        ("0001-01-01T00:00:00+23:59", 1),
        ("9999-12-31T23:59:59-23:59", 1),
        ("2026-01-01T00:00:00", 1),
    ],
)
def test_token_of_no_list_is_refused(time: str, total: int) -> None:
    with pytest.raises(InvalidPageToken):
        read_list_token(RUNS, write_page_token(RUNS, time, RUN, total))


@drawn
@given(TEXT)
def test_any_text_is_read_or_refused(token: str) -> None:
    try:
        at, _, total = read_list_token(RUNS, token)
    except InvalidPageToken:
        return
    assert at.astimezone(UTC) == at
    assert 0 <= total < 2**31
