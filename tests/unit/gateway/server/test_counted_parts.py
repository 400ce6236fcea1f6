"""The parts of a body are counted whatever its chunks, and text of a field is none."""

import json

import pytest
from starlette.exceptions import HTTPException

from services.gateway.http.uploads import MAX_FORM_FIELDS
from services.gateway.server.bounded_requests import MAX_JSON_VALUES, PartCount


def counting(content_type: str) -> PartCount:
    return PartCount({"type": "http", "headers": [(b"content-type", content_type.encode())]})


def check(body: bytes, content_type: str, size: int) -> None:
    count = counting(content_type)
    for at in range(0, len(body), size):
        count.check(body[at : at + size])


def form(fields: int, text: str) -> bytes:
    part = f'--a\r\nContent-Disposition: form-data; name="f"\r\n\r\n{text}\r\n'
    return (part * fields + "--a--\r\n").encode()


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_fields_of_a_form_are_counted_and_not_the_letters_of_their_text(size: int) -> None:
    few, many = form(2, "a" * 500), form(MAX_FORM_FIELDS + 1, "b")
    check(few, "multipart/form-data; boundary=a", size)
    with pytest.raises(HTTPException, match="413"):
        check(many, "multipart/form-data; boundary=a", size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("text", ["[,{", '\\"[,', '\\\\",[', "\\\\\\", "\u0000,", "\U0001f600[", '"', "\\"])
def test_texts_of_json_count_as_one_value_however_they_are_cut(size: int, text: str) -> None:
    body = json.dumps({"a": [text * 30_000, text], "b": text}, ensure_ascii=False).encode()
    count = counting("application/json")
    for at in range(0, len(body), size) if size > 7 else range(0, 3000, size):
        count.check(body[at : at + size])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8", "utf-8-sig"])
def test_many_values_are_refused_in_each_encoding(encoding: str) -> None:
    body = json.dumps(["\u2200\u5b57"] * (MAX_JSON_VALUES + 1), ensure_ascii=False).encode(encoding)
    with pytest.raises(HTTPException, match="413" if encoding.startswith("utf-8") else "400"):
        counting("application/json").check(body)
