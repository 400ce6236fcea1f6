"""A DSN as it is shown: the address of the server, never a password; and JSON that Postgres takes."""

import json

import pytest

from services.common.postgres import address_of, storable_json


@pytest.mark.parametrize(
    ("dsn", "address"),
    [
        ("postgresql://u:SECRET@h:5432/db", "h:5432"),
        ("postgresql://h:5432/db?user=u&password=SECRET", "h:5432"),
        ("postgresql://u:SECRET@[::1]:5432/db", "[::1]:5432"),
        ("postgresql://u:SECRET@h1:1,h2:2/db", "h1:1,h2:2"),
        ("postgresql:///db?host=/run/pg&port=5433&password=SECRET", "/run/pg:5433"),
        ("postgresql://u:SEC@RET@h/db", "h"),
        ("postgresql://u:SECRET/db", "an address that cannot be read"),
        ("postgresql://[u:SECRET@h/db", "an address that cannot be read"),
        ("host=h password=SECRET", "an address that cannot be read"),
    ],
)
def test_only_host_and_port_are_reported(dsn: str, address: str) -> None:
    assert address_of(dsn) == address


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain é \U0001f600", "plain é \U0001f600"),
        ("a\0b\ud800", "a\ufffdb\ufffd"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\\u0000 \\ud800", "\\u0000 \\ud800"),
        ("\\\0\\\\ud800", "\\\ufffd\\\\ud800"),
    ],
)
def test_only_characters_are_left(text: str, stored: str) -> None:
    assert json.loads(storable_json(json.dumps({text: [text]}))) == {stored: [stored]}
