"""Which servers an order may name."""

import pytest

from proctor.values.providers.base_urls import host_of, is_allowed, parse_allowed, parse_base_url
from proctor.values.providers.errors import NoBaseUrl

ALLOWED = parse_allowed("http://inside:8000/v1, https://models.example\nhttp://[::1]:9000")


@pytest.mark.parametrize(
    "base_url",
    [
        "http://inside:8000/v1",
        "http://inside:8000/v1/",
        "http://inside:8000/v1/team",
        "https://models.example/any/path",
        "https://models.example:443",
        "http://[::1]:9000/v1",
    ],
)
def test_address_at_or_below_an_allowed_one_may_be_asked(base_url: str) -> None:
    assert is_allowed(parse_base_url(base_url), ALLOWED)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://inside:8000",
        "http://inside:8000/v10",
        "http://inside:8000/other/v1",
        "http://inside:8001/v1",
        "http://inside/v1",
        "https://inside:8000/v1",
        "http://inside.example:8000/v1",
        "http://models.example/v1",
        "https://models.example:8443/v1",
        "https://evil-models.example/v1",
        "https://models.example.evil/v1",
        "http://127.0.0.1:4222",
    ],
)
def test_any_other_address_may_not(base_url: str) -> None:
    assert not is_allowed(parse_base_url(base_url), ALLOWED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "inside:8000/v1",
        "ftp://inside/v1",
        "file:///etc/passwd",
        "http://",
        "http://user:secret@inside:8000/v1",
        "http://inside:8000@evil/v1",
        "http://inside:8000/v1/../admin",
        "http://inside:8000/v1/./x",
        "http://inside:8000/v1/%2e%2e/admin",
        "http://inside:8000/v1?key=secret",
        "http://inside:8000/v1#x",
        "http://inside:8000\\@evil/v1",
        "http://inside:8000//evil",
        "http://INSIDE:8000/v1",
        "http://inside:0/v1",
        "http://inside:99999/v1",
        "http://in side/v1",
        "http://inside/v1\n",
        "http://ｉnside/v1",
        "http://[::1/v1",
        "http://[12345::1]/v1",
        "http://inside/" + "x" * 1100,
    ],
)
def test_what_readers_of_addresses_may_read_otherwise_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(NoBaseUrl) as raised:
        parse_base_url(text)
    assert "secret" not in str(raised.value)


def test_nothing_is_allowed_by_default() -> None:
    assert parse_allowed(" ") == ()
    assert not is_allowed(parse_base_url("http://inside/v1"), ())


def test_host_of_what_an_operator_wrote_is_found_however_it_is_written() -> None:
    assert host_of("https://API.openai.com/v1?x=1") == "api.openai.com"
    assert host_of("http://[::1/v1") == ""
