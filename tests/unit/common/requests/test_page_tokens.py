"""Page tokens come back as they were written, and nothing else is one."""

import os
import string

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from services.common.errors import InvalidPageToken
from services.common.requests.page_tokens import read_page_token, write_page_token

CASES = int(os.environ.get("PROCTOR_PROPERTY_CASES", "100"))
# A hundred thousand cases take longer than any other test.
pytestmark = pytest.mark.timeout(600 + CASES // 20)
drawn = settings(max_examples=CASES, deadline=None)
PARTS = ("2026-01-02T03:04:05+00:00", "ds_1", "17")
# A table of all characters takes hypothesis seconds, so few are drawn beyond these.
TEXT = some.text(some.characters(max_codepoint=0x2FFF) | some.sampled_from("\U0001f600\U0010ffff"))
LETTERS = string.ascii_letters + string.digits + "-_="


@drawn
@given(some.lists(TEXT.filter(lambda text: "\n" not in text), min_size=1))
def test_a_key_comes_back_from_its_token(parts: list[str]) -> None:
    assert read_page_token("list", write_page_token("list", *parts), list) == parts


def test_a_token_can_stand_in_an_address() -> None:
    token = write_page_token("list", "\u00ff\u00fe?", 2**31)
    assert all(letter.isalnum() or letter in "-_" for letter in token)


@pytest.mark.parametrize("token", ["", "%%%", "a", "_-_-", "\u00e9", "YWJj=YWJj"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken):
        read_page_token("list", token, list)


@drawn
@given(some.data())
def test_changed_token_is_refused(data: some.DataObject) -> None:
    """Letters are replaced, left out, put in or repeated anywhere."""
    token = write_page_token("list", *PARTS)
    start = data.draw(some.integers(0, len(token)))
    end = data.draw(some.integers(start, len(token)))
    put = data.draw(some.text(LETTERS, max_size=4) | some.just(token))
    changed = token[:start] + put + token[end:]
    assume(changed != token)
    with pytest.raises(InvalidPageToken):
        read_page_token("list", changed, list)


def test_token_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidPageToken):
        read_page_token("others", write_page_token("list", *PARTS), list)
