"""A form is read alike wherever its bytes are cut."""

from collections.abc import AsyncIterator, Sequence

import pytest

from services.gateway.http.errors import MalformedForm
from services.gateway.http.uploads import MAX_FORM_FIELDS, FormItem, FormPart, form_parts

CONTENT_TYPE = 'multipart/form-data; charset=utf-8; boundary="a b"'
CONTENT = b"\r\n--a\r\n-\r\n--a c\r\r\n\n--a b"
BODY = (
    b"\r\n--a b\r\ncontent-disposition: form-data; name=purpose\r\n\r\n\r\n"
    b"--a b\r\nContent-Type: text/csv\r\n"
    b'Content-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    + CONTENT
    + b"\r\n--a b--\r\nwhat follows is of no interest"
)


async def pieces(*cut: bytes) -> AsyncIterator[bytes]:
    for piece in cut:
        yield piece


async def found(*cut: bytes) -> list[FormItem]:
    """Content that comes in several pieces is put together."""
    whole: list[FormItem] = []
    async for each in form_parts(CONTENT_TYPE, pieces(*cut)):
        last = whole[-1] if whole else None
        if isinstance(each, bytes) and isinstance(last, bytes):
            whole[-1] = last + each
        else:
            whole.append(each)
    return whole


WHOLE: Sequence[FormItem] = (FormPart("purpose", None), FormPart("file", "a.csv"), CONTENT)


async def test_form_is_read_alike_wherever_it_is_cut() -> None:
    for index in range(len(BODY) + 1):
        assert await found(BODY[:index], BODY[index:]) == list(WHOLE), index
    assert await found(*(bytes([byte]) for byte in BODY)) == list(WHOLE)


async def test_form_that_ends_before_its_end_is_refused_wherever_it_ends() -> None:
    end = BODY.rindex(b"--\r\n") + 2
    for index in range(end):
        with pytest.raises(MalformedForm):
            await found(BODY[:index])


async def test_a_form_of_many_fields_is_refused_wherever_it_is_cut() -> None:
    """A file is forwarded as it comes, so nothing counts its fields before."""
    field = b"--a b\r\ncontent-disposition: form-data; name=suite\r\n\r\n1\r\n"
    assert len([each for each in await found(field * MAX_FORM_FIELDS + b"--a b--") if each != b"1"]) == 100
    for cut in (1, 1000, len(field) * MAX_FORM_FIELDS):
        body = field * (MAX_FORM_FIELDS + 1)
        with pytest.raises(MalformedForm) as refused:
            await found(body[:cut], body[cut:])
        assert "more than 100 fields" in refused.value.message


async def test_content_that_looks_like_boundaries_comes_in_as_few_pieces_as_the_body() -> None:
    looks_alike = b"\r\n--a" * 20_000
    start, end = BODY.split(CONTENT)
    body = start + looks_alike + end
    content = [each async for each in form_parts(CONTENT_TYPE, pieces(body)) if isinstance(each, bytes)]
    assert content == [looks_alike]
