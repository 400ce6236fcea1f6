"""Ranges of a file of ten bytes.
Conditions and ranges follow RFC 9110.
"""

import pytest
from starlette.exceptions import HTTPException

from services.gateway.http.downloads import ByteRange, ContentConditions, byte_range


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        ("bytes=0-", ByteRange(0, 10)),
        ("Bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-4", ByteRange(2, 5)),
        ("bytes=9-", ByteRange(9, 10)),
        ("bytes=4-1000000000000000000", ByteRange(4, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-30", ByteRange(0, 10)),
        ("", None),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=0-0,2-3", None),
        ("bytes=a-b", None),
        ("bytes=1٣-", None),
        ("bytes=99999999999999999999-", None),
        ("rows=1-2", None),
    ],
)
def test_one_range_of_bytes_is_understood_and_else_all_is_meant(header: str, asked: ByteRange | None) -> None:
    assert byte_range(header, 10) == asked


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-1", 0)]
)
def test_range_that_a_file_does_not_have_is_416(header: str, size: int) -> None:
    with pytest.raises(HTTPException) as raised:
        byte_range(header, size)
    assert raised.value.status_code == 416
    assert raised.value.headers == {"Content-Range": f"bytes */{size}"}


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
