"""However a server repeats a key, it is not passed on."""

import html
import json
import time
from urllib.parse import quote

import orjson
import pytest

from services.worker.engines.http.error_responses import parse_plain_error
from services.worker.engines.http.key_redaction import KeyRedactor
from services.worker.engines.parsed_json import read_document

KEY = 'sk/planted+by="a-test"&more'
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
# As .NET writes it.
PLUS_ESCAPED = json.dumps(KEY)[1:-1].replace("+", "\\u002B").replace("&", "\\u0026")
NESTED = json.dumps(json.dumps({"upstream": KEY}).replace("+", "\\u002b"))


@pytest.mark.parametrize(
    "body",
    [
        f"the key {KEY} is wrong".encode(),
        orjson.dumps({"error": {"message": f"the key {KEY} is wrong"}}),
        json.dumps({"error": f"the key {KEY} is wrong"}).replace("/", "\\/").encode(),
        f"see https://help/?key={quote(KEY, safe='')} now".encode(),
        f"see https://help/?key={quote(KEY, safe='/').lower()} now".encode(),
        f'{{"error": "the key {ESCAPED} is wrong"}}'.encode(),
        ("x" * 290 + KEY).encode(),
        f'{{"error": "{"x" * 180} {PLUS_ESCAPED}"}}'.encode(),
        f'{{"error": "cut off {PLUS_ESCAPED}'.encode(),
        f'{{"error": {NESTED}}}'.encode(),
        f"<p>the key {html.escape(KEY).replace('+', '&#x2B;')} is wrong</p>".encode(),
    ],
)
def test_key_is_redacted_from_responses(body: bytes) -> None:
    reported = parse_plain_error(KeyRedactor(KEY).redact(body)).message
    assert "***" in reported
    for form in (KEY, KEY[:8], KEY[-8:], "planted", quote(KEY, safe=""), ESCAPED):
        assert form not in reported


@pytest.mark.parametrize("key", [KEY, "sk-plain_key.0123456789"])
def test_answer_that_repeats_the_key_is_read_without_it(key: str) -> None:
    for reported in (json.dumps(key)[1:-1], "".join(f"\\u{ord(letter):04X}" for letter in key)):
        body = f'{{"id": 1, "content": "\\n{reported}\\u00e9", "Bearer {reported}": []}}'
        document = read_document(KeyRedactor(key).redact(body.encode()))
        assert document == {"id": 1, "content": "\n***é", "Bearer ***": []}


def test_each_of_several_secrets_is_taken_out() -> None:
    assert KeyRedactor("password", "password-and-more").redact(b"password-and-more password") == b"*** ***"


@pytest.mark.parametrize("secrets", [(), ("",), ("EMPTY",)])
def test_without_a_key_nothing_is_taken_out(secrets: tuple[str, ...]) -> None:
    assert KeyRedactor(*secrets).redact(b'"EMPTY as it is\\u00e9"') == b'"EMPTY as it is\\u00e9"'


def test_body_that_is_all_escapes_takes_no_time() -> None:
    traces = KeyRedactor(KEY)
    started = time.perf_counter()
    for hostile in (b"\\" * 1_000_000, b"%25" * 300_000, b"&#" + b"0" * 1_000_000, b"\\\\u0073" * 100_000):
        traces.redact(hostile)
    assert time.perf_counter() - started < 5
