"""Page tokens come back as they went out, and nothing else comes in."""

import pytest

from services.common.errors import InvalidPageToken
from services.common.requests.page_tokens import key_token, read_key_token


def test_a_token_brings_its_key_back() -> None:
    assert read_key_token("l", key_token("l", (123456, 7)), first=(0, 0)) == (123456, 7)


def test_no_token_means_the_first_page() -> None:
    assert read_key_token("l", "", first=(5, -1)) == (5, -1)


@pytest.mark.parametrize("token", ["x", "nonsense", "MS4", "LTEuMA", key_token("l", (2**40, 0)), "é"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidPageToken, match="is not one that this list gave"):
        read_key_token("l", token, first=(0, 0))
