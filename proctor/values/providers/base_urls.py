"""Addresses of model servers, and which of them an order may name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from proctor.values.providers.errors import NoBaseUrl

_MAX_CHARACTERS = 1024
# Only characters that all URL parsers read in the same way: no escapes, no user names, no queries.
_PLAIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class BaseUrl:
    scheme: str
    host: str
    port: int
    segments: tuple[str, ...]

    def holds(self, other: "BaseUrl") -> bool:
        """Whether the other is this address or lies below it."""
        is_same_server = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return is_same_server and other.segments[: len(self.segments)] == self.segments


def parse_base_url(text: str) -> BaseUrl:
    """Raises NoBaseUrl, which does not repeat the text: it may hold a password."""
    if len(text) > _MAX_CHARACTERS or not _PLAIN.fullmatch(text):
        raise NoBaseUrl(
            "must be a plain address such as http://server:8000/v1, in lower case up to the path, "
            "without a user name, password, query or escapes"
        )
    try:
        parts = urlsplit(text)
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError as error:  # a port above 65535, or no address of version 6
        raise NoBaseUrl("has an invalid host or port") from error
    segments = tuple(segment for segment in parts.path.split("/") if segment)
    if port == 0 or not {".", ".."}.isdisjoint(segments):
        raise NoBaseUrl("must have a port from 1 to 65535 and a path without . and ..")
    return BaseUrl(parts.scheme, parts.hostname or "", port, segments)


def parse_allowed(text: str) -> tuple[BaseUrl, ...]:
    """Addresses between commas or white space; raises NoBaseUrl."""
    return tuple(parse_base_url(each) for each in re.split(r"[,\s]+", text) if each)


def is_allowed(base_url: BaseUrl, allowed: Iterable[BaseUrl]) -> bool:
    return any(each.holds(base_url) for each in allowed)


def may_ask(text: str, allowed: Iterable[BaseUrl]) -> bool:
    """Whether the text is an address that is allowed."""
    try:
        return is_allowed(parse_base_url(text), allowed)
    except NoBaseUrl:
        return False


def host_of(text: str) -> str:
    """The host of an address that an operator wrote, which may be any; empty where it has none."""
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""


def is_http_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # not a port, or not an address of version 6
        return False
