"""However a server repeats a key, it is not told on."""

from __future__ import annotations

import json
from urllib.parse import quote

import orjson
import pytest

from services.worker.http_failures import read_plain_error
from services.worker.key_traces import KeyTraces

KEY = 'sk/planted+by="a-test"'
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)


@pytest.mark.parametrize(
    "body",
    [
        f"the key {KEY} is wrong".encode(),
        orjson.dumps({"error": {"message": f"the key {KEY} is wrong"}}),
        json.dumps({"error": f"the key {KEY} is wrong"}).replace("/", "\\/").encode(),
        f"see https://help/?key={quote(KEY, safe='')} now".encode(),
        f'{{"error": "the key {ESCAPED} is wrong"}}'.encode(),
        ("x" * 290 + KEY).encode(),
    ],
)
def test_key_is_taken_out_of_what_a_server_says(body: bytes) -> None:
    traces = KeyTraces(KEY)
    told = traces.out_of_text(read_plain_error(traces.out_of(body)).message)
    assert "***" in told
    for form in (KEY, KEY[:8], quote(KEY, safe=""), ESCAPED):
        assert form not in told


def test_without_a_key_nothing_is_taken_out() -> None:
    assert KeyTraces(None).out_of(b"as it is") == b"as it is"
    assert KeyTraces(None).out_of_text("as it is") == "as it is"
