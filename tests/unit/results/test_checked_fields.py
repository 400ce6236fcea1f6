"""Page tokens come back as they went out, and nothing else comes in."""

import pytest

from services.results.checked_fields import InvalidPageToken, read_page_token, write_page_token


def test_a_token_brings_its_key_back() -> None:
    assert read_page_token("l", write_page_token("l", (123456, 7)), first=(0, 0)) == (123456, 7)


def test_no_token_means_the_first_page() -> None:
    assert read_page_token("l", "", first=(5, -1)) == (5, -1)


@pytest.mark.parametrize("token", ["x", "nonsense", "MS4", "LTEuMA", write_page_token("l", (2**40, 0)), "é"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken, match="is not one that this list gave"):
        read_page_token("l", token, first=(0, 0))
