"""Where a browser comes back to once the provider has signed it in again."""

import pytest

from services.gateway.server.renewed_sign_in import address_of


@pytest.mark.parametrize(
    ("path", "raw_path", "query", "address"),
    [
        ("/runs", b"/runs", b"", "/runs"),
        ("/runs", b"/runs", b"model=a%2Fb&after=7", "/runs?model=a%2Fb&after=7"),
        ("/datasets/who?", b"/datasets/who%3F", b"", "/datasets/who%3F"),
        ("/datasets/a#1/b", b"/datasets/a%231%2Fb", b"row=2", "/datasets/a%231%2Fb?row=2"),
        ("/datasets/день", b"", b"", "/datasets/%D0%B4%D0%B5%D0%BD%D1%8C"),
    ],
)
def test_the_address_is_as_it_was_sent(path: str, raw_path: bytes, query: bytes, address: str) -> None:
    assert address_of({"path": path, "raw_path": raw_path, "query_string": query}) == address
