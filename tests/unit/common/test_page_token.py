"""Page tokens come back as they were written, and nothing else is one."""

import pytest

from services.common.page_token import InvalidToken, read_page_token, write_page_token


def test_a_key_comes_back_from_its_token() -> None:
    assert read_page_token(write_page_token("2026-01-02T03:04:05+00:00", "ds_1", 17)) == [
        "2026-01-02T03:04:05+00:00",
        "ds_1",
        "17",
    ]


def test_a_token_can_stand_in_an_address() -> None:
    assert all(letter.isalnum() or letter in "-_" for letter in write_page_token("\u00ff\u00fe?", 2**31))


@pytest.mark.parametrize("token", ["%%%", "a", "_-_-", "\u00e9", "YWJj=YWJj"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidToken):
        read_page_token(token)
