"""What a client has already, and which range it wants, is told as RFC 9110 has it."""

import pytest

from services.gateway.http_content_conditions import ContentConditions

TAG = '"a,b"'


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        (['"a,b"'], True),
        (['W/"a,b"'], True),
        (['"x" ,  "a,b","y"'], True),
        (['"x"', 'W/"y", "a,b"'], True),
        (["*"], True),
        ([" * "], True),
        (['"x", "y"'], False),
        (['"a"', '"b"'], False),
        (["a,b"], False),
        ([""], False),
        (None, False),
    ],
)
def test_content_is_known_by_any_of_its_tags(lines: list[str] | None, *, is_known: bool) -> None:
    assert ContentConditions(if_none_match=lines).has(TAG) is is_known


@pytest.mark.parametrize(
    ("lines", "is_known"), [(["*"], True), (['""'], False), ([""], False), (None, False)]
)
def test_content_without_a_tag_is_known_by_any(lines: list[str] | None, *, is_known: bool) -> None:
    assert ContentConditions(if_none_match=lines).has("") is is_known


@pytest.mark.parametrize(
    ("if_range", "wanted"),
    [
        ("", "bytes=1-"),
        (TAG, "bytes=1-"),
        (f" {TAG} ", "bytes=1-"),
        (f"W/{TAG}", ""),
        ('"x"', ""),
        ("Wed, 21 Oct 2015 07:28:00 GMT", ""),
        ("*", ""),
    ],
)
def test_range_is_taken_of_the_very_same_bytes_only(if_range: str, wanted: str) -> None:
    assert ContentConditions(byte_range="bytes=1-", if_range=if_range).range_of(TAG) == wanted
