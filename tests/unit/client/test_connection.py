"""Addresses of gateways, and the keys that are not sent to them without TLS."""

from pathlib import Path

import pytest

from proctor.client.calls import GatewayAddress, open_channel
from proctor.client.errors import Refused


@pytest.mark.parametrize(
    ("text", "target", "security"),
    [
        ("127.0.0.1:8081", "127.0.0.1:8081", "none"),
        ("gateway:8081", "gateway:8081", "none"),
        ("http://gateway:8081", "gateway:8081", "none"),
        ("https://gateway", "gateway:443", "TLS"),
        ("https://gateway:8443/", "gateway:8443", "TLS"),
        ("https://[::1]:8443", "[::1]:8443", "TLS"),
    ],
)
def test_address_is_read_with_its_scheme(text: str, target: str, security: str) -> None:
    assert GatewayAddress.parse(text) == GatewayAddress(target, is_secure=security == "TLS")


@pytest.mark.parametrize(
    "text", ["ftp://gateway:1", "https://", "https://gateway:x", "https://gateway/v1", "https://a:secret@b"]
)
def test_what_is_no_address_is_refused_and_shows_no_password(text: str) -> None:
    with pytest.raises(Refused, match="write host:port, or https://host:port for TLS") as refused:
        GatewayAddress.parse(text)
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("address", ["gateway:8081", "http://gateway:8081", "10.0.0.1:1", "localhost.evil:1"])
async def test_key_is_not_sent_to_another_machine_without_tls(address: str) -> None:
    with pytest.raises(Refused, match="without TLS others on the way can read it"):
        open_channel(address, (), has_key=True, environ={})
    await open_channel(address, (), has_key=False, environ={}).close()
    await open_channel(address, (), has_key=True, environ={"PROCTOR_ALLOW_PLAINTEXT_KEY": "true"}).close()


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "127.8.0.1:1", "localhost:1", "[::1]:1", "unix:/run/x", "https://gateway"]
)
async def test_key_is_sent_to_this_machine_and_with_tls(address: str) -> None:
    await open_channel(address, (), has_key=True, environ={}).close()


def test_file_of_authorities_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    environ = {"SSL_CERT_FILE": str(tmp_path / "none.pem")}
    with pytest.raises(Refused, match=r"SSL_CERT_FILE: .*none\.pem cannot be read: No such file"):
        open_channel("https://gateway", (), has_key=True, environ=environ)
