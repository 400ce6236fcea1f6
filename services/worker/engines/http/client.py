"""The HTTP client of all providers: sends a request, returns its JSON or raises its failure, leaks no key."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import aiohttp
import orjson
from yarl import URL

from services.worker.engines import engine
from services.worker.engines.http.errors import (
    ErrorResponse,
    ProviderError,
    failure_of,
    parse_plain_error,
    parse_retry_after,
)
from services.worker.engines.http.key_redaction import KeyRedactor
from services.worker.engines.http.rate_limit_headers import parse_limits
from services.worker.engines.http.responses import (
    AnswerStream,
    HttpResponse,
    StreamError,
    StreamReading,
    is_streamed,
    read_body,
)
from services.worker.engines.parsed_json import Json, read_document
from services.worker.rate_limits.limiter import AdvertisedLimits


def _ignore_limits(base_url: str, limits: AdvertisedLimits) -> None:
    """For requests that no rate limiter paces."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider's server. `provider` is the first part of model names and is not sent."""

    base_url: str
    provider: str
    api_key: str | None = field(default=None, repr=False)
    # The environment variable that the key came from, or should have come from.
    api_key_variable: str = ""
    timeout_seconds: float = 600.0
    connect_timeout_seconds: float = 10.0
    # The longest pause in the middle of a streamed answer.
    idle_timeout_seconds: float = 60.0
    connections: int = 256
    # Called with the limits that the server's headers advertise.
    on_advertised: Callable[[str, AdvertisedLimits], None] = field(default=_ignore_limits, repr=False)

    def server_model(self, model: str) -> str:
        return model.removeprefix(f"{self.provider}/")

    def secrets(self) -> Iterator[str]:
        """What it sends and must not leak: the key, and the user information of the URL."""
        yield self.api_key or ""
        url = URL(self.base_url)
        yield url.password or url.user or ""
        if sent := aiohttp.BasicAuth.from_url(url):
            yield sent.encode().removeprefix("Basic ")

    def facts(self) -> Mapping[str, str]:
        """What a run stores; never a key or a password."""
        return {
            "engine_version": f"aiohttp {aiohttp.__version__}",
            "provider": self.provider,
            "base_url": str(URL(self.base_url.rstrip("/")).with_user(None).with_query(None)),
        }


def bearer_header(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a protocol carries the key and its errors; `needs_key_of` names a provider that requires a key."""

    key_headers: Callable[[str], Mapping[str, str]] = bearer_header
    parse_error: Callable[[bytes], ProviderError] = parse_plain_error
    needs_key_of: str = ""


class HttpClient:
    """A pool of connections; create it inside a running event loop."""

    def __init__(self, endpoint: Endpoint, dialect: Dialect) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._base_url = endpoint.base_url.rstrip("/")
        # Servers may repeat the key that they refuse, or all the headers of the request.
        self._redactor = KeyRedactor(*endpoint.secrets())
        key_headers = dialect.key_headers(endpoint.api_key) if endpoint.api_key else {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=endpoint.connections, keepalive_timeout=60),
            timeout=aiohttp.ClientTimeout(
                total=endpoint.timeout_seconds, sock_connect=endpoint.connect_timeout_seconds
            ),
            headers={"Content-Type": "application/json", **key_headers},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def get(self, path: str) -> Json:
        return (await self._exchange("GET", path, None)).document

    async def post(self, path: str, body: Json) -> Json:
        return (await self.send(path, body)).document

    async def send(self, path: str, body: Json, stream: AnswerStream | None = None) -> HttpResponse:
        """Like `post`, with its times; `stream` assembles the answer where streaming was requested."""
        return await self._exchange("POST", path, orjson.dumps(body), stream)

    async def close(self) -> None:
        await self._session.close()

    async def _exchange(
        self, method: str, path: str, payload: bytes | None, stream: AnswerStream | None = None
    ) -> HttpResponse:
        """One request; cancelling it closes the connection, so that the server stops generating."""
        self._require_key()
        try:
            return await self._request(method, path, payload, stream)
        except StreamError as error:
            raise self._failure(error.status, {}, error.body, is_midway=True) from error
        except TimeoutError as error:
            raise engine.RequestTimedOut(f"The server at {self._host} did not answer in time.") from error
        except aiohttp.ClientPayloadError as error:
            raise engine.ProviderFailed(f"The answer of the server at {self._host} was cut off.") from error
        except aiohttp.InvalidURL as error:
            raise engine.ModelRefused("The provider's base URL is not valid; check the pool.") from error
        except (aiohttp.ClientError, OSError) as error:
            reason = f"The server at {self._host} cannot be reached or closed the connection"
            raise engine.ProviderFailed(f"{reason} ({type(error).__name__}).") from error

    async def _request(
        self, method: str, path: str, payload: bytes | None, stream: AnswerStream | None
    ) -> HttpResponse:
        sent = time.monotonic()
        # A redirect is not followed: it could carry the key to another host.
        async with self._session.request(
            method, self._base_url + path, data=payload, allow_redirects=False
        ) as response:
            if limits := parse_limits(response.headers):
                self._endpoint.on_advertised(self._base_url, limits)
            if stream is not None and is_streamed(response):
                reading = StreamReading(stream, sent, self._endpoint.idle_timeout_seconds)
                answer = await reading.read(response.content)
                # Only the whole document is redacted, since a key may be split between events.
                return replace(answer, document=self._read(orjson.dumps(answer.document)))
            body = await read_body(response.content, len(payload or b""))
        seconds = time.monotonic() - sent
        if response.status >= 300:
            raise self._failure(response.status, response.headers, body)
        return HttpResponse(self._read(body), seconds)

    def _read(self, body: bytes) -> Json:
        return read_document(self._redactor.redact(body))

    def _failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, is_midway: bool = False
    ) -> engine.EngineFailure:
        error = self._dialect.parse_error(self._redactor.redact(body))
        wait = parse_retry_after(headers, time.time())
        variable = self._endpoint.api_key_variable
        return failure_of(ErrorResponse(status, error, variable, wait, is_midway=is_midway))

    def _require_key(self) -> None:
        provider, variable = self._dialect.needs_key_of, self._endpoint.api_key_variable
        if provider and not self._endpoint.api_key:
            advice = f"set {variable} where the worker runs" if variable else "name its variable in the pool"
            raise engine.ModelRefused(f"API key not configured for {provider}: {advice}.")

    @property
    def _host(self) -> str:
        url = URL(self._base_url)
        return f"{url.host}:{url.port}"
