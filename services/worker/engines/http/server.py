"""A provider's server as both clients see it: where it is, what each request carries, what responses mean."""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

from yarl import URL

from proctor.values.plain import Json
from proctor.values.providers.rules import ProviderRules
from proctor.values.usage import TokenUsage
from services.worker.engines.errors import EngineFailure, ModelRefused, ProviderFailed, RequestTimedOut
from services.worker.engines.http.error_bodies import AnswerError
from services.worker.engines.http.error_responses import (
    ErrorPlace,
    ErrorResponse,
    ProviderError,
    failure_of,
    parse_plain_error,
    parse_retry_after,
)
from services.worker.engines.http.key_redaction import KeyRedactor
from services.worker.engines.http.rate_limit_headers import parse_limits
from services.worker.engines.http.usage import openai_usage
from services.worker.engines.parsed_json import read_document
from services.worker.rate_limits.limiter import AllowedLimits


def _ignore_limits(base_url: str, limits: AllowedLimits) -> None:
    """Ignores limits, for requests that no rate limiter paces."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's server. `provider` is the first part of model names and is not sent."""

    base_url: str
    provider: str
    api_key: str | None = field(default=None, repr=False)
    # The environment variable that the key came from, or should have come from.
    api_key_env: str = ""
    timeout_seconds: float = field(kw_only=True)
    connect_timeout_seconds: float = 10.0
    # The longest pause in the middle of a streamed answer.
    idle_timeout_seconds: float = 60.0
    connections: int = 256
    # Called with the limits that the server's headers name.
    on_allowed: Callable[[str, AllowedLimits], None] = field(default=_ignore_limits, repr=False)

    def server_model(self, model: str) -> str:
        return model.removeprefix(f"{self.provider}/")

    def secrets(self) -> Iterator[str]:
        """The texts that it sends and must not leak: the key, and the user information of the URL."""
        yield self.api_key or ""
        url = URL(self.base_url)
        yield url.password or url.user or ""
        yield _basic(url)

    def without_user(self) -> tuple[str, Mapping[str, str]]:
        """The base URL without its user information, and the header that carries that, if any."""
        url = URL(self.base_url)
        basic = _basic(url)
        headers = {"Authorization": f"Basic {basic}"} if basic else {}
        return (str(url.with_user(None)) if basic else self.base_url).rstrip("/"), headers

    def facts(self) -> Mapping[str, str]:
        """Facts that a run stores; never a key or a password."""
        return {
            "engine_version": f"httptools {version('httptools')}",
            "provider": self.provider,
            "base_url": str(URL(self.base_url.rstrip("/")).with_user(None).with_query(None)),
        }


def _basic(url: URL) -> str:
    """The user and the password of a URL as a request carries them (RFC 7617); empty without any."""
    if url.user is None and url.password is None:
        return ""
    return b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()


def bearer_header(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


@dataclass(frozen=True, slots=True)
class ServerDialect:
    """How a protocol carries the key, its errors and its counts of tokens.

    `needs_key_of` is a provider that requires a key.
    """

    key_headers: Callable[[str], Mapping[str, str]] = bearer_header
    parse_error: Callable[[bytes], ProviderError] = parse_plain_error
    needs_key_of: ProviderRules | None = None
    read_usage: Callable[[Json], TokenUsage] = openai_usage


class Server:
    """An endpoint in its dialect. No failure that it makes holds a key."""

    def __init__(self, endpoint: Endpoint, dialect: ServerDialect) -> None:
        self.endpoint = endpoint
        self.base_url = endpoint.base_url.rstrip("/")
        self._dialect = dialect
        # Servers may repeat the key that they refuse, or all the headers of the request.
        self._redactor = KeyRedactor(*endpoint.secrets())
        key_headers = dialect.key_headers(endpoint.api_key) if endpoint.api_key else {}
        self.headers = {"Content-Type": "application/json", **key_headers}

    def require_key(self) -> None:
        provider, variable = self._dialect.needs_key_of, self.endpoint.api_key_env
        if provider and not self.endpoint.api_key:
            advice = f"set {variable} where the worker runs" if variable else "name its variable in the pool"
            page = f"{provider.keys_page} gives keys"
            raise ModelRefused(f"API key not configured for {provider.name}: {advice} ({page}).")

    def note_limits(self, headers: Mapping[str, str]) -> None:
        if limits := parse_limits(headers):
            self.endpoint.on_allowed(self.base_url, limits)

    def read(self, body: bytes) -> Json:
        return read_document(self._redactor.redact(body))

    def failure(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        *,
        place: ErrorPlace = ErrorPlace.RESPONSE,
        request: Json | None = None,
    ) -> EngineFailure:
        error = self._dialect.parse_error(self._redactor.redact(body))
        wait = parse_retry_after(headers, time.time())
        variable = self.endpoint.api_key_env
        return failure_of(ErrorResponse(status, error, variable, wait, place=place, request=request))

    def failure_instead(self, error: AnswerError, *, request: Json | None = None) -> EngineFailure:
        """The failure for an error that came in the place of an answer."""
        place = ErrorPlace.STREAM if error.is_midway else ErrorPlace.ANSWER
        return self.failure(error.status, {}, error.body, place=place, request=request)

    def timed_out(self) -> EngineFailure:
        return RequestTimedOut(f"The server at {self._host} did not answer in time.")

    def cut_off(self) -> EngineFailure:
        return ProviderFailed(f"The answer of the server at {self._host} was cut off.")

    def invalid_url(self) -> EngineFailure:
        return ModelRefused("The provider's base URL is not valid; check the pool.")

    def unreachable(self, error: Exception) -> EngineFailure:
        reason = f"The server at {self._host} cannot be reached or closed the connection"
        return ProviderFailed(f"{reason} ({type(error).__name__}).")

    @property
    def _host(self) -> str:
        url = URL(self.base_url)
        return f"{url.host}:{url.port}"
