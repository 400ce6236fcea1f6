"""One HTTP request to a model server and its answer as JSON, or the failure that it is; keys stay inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import aiohttp
import orjson
from yarl import URL

from services.worker.engines import engine
from services.worker.engines.http.errors import (
    ErrorAnswer,
    SaidError,
    failure_of,
    read_plain_error,
    read_retry_after,
)
from services.worker.engines.http.key_redaction import KeyTraces
from services.worker.engines.http.rate_limit_headers import read_allowed
from services.worker.engines.http.responses import (
    AnswerStream,
    BrokenOff,
    HttpAnswer,
    StreamReading,
    is_streamed,
    read_body,
)
from services.worker.engines.json_values import Json, read_document
from services.worker.rate_limits.limiter import Allowed


def _hear_nothing(base_url: str, allowed: Allowed) -> None:
    """For those who ask at no pace."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is asked. `provider` is the first part of a model's name and is not sent to it."""

    base_url: str
    provider: str
    api_key: str | None = field(default=None, repr=False)
    # The environment variable that the key came from, or should have come from.
    api_key_variable: str = ""
    timeout_seconds: float = 600.0
    connect_timeout_seconds: float = 10.0
    # The longest silence in the middle of a streamed answer.
    idle_timeout_seconds: float = 60.0
    connections: int = 256
    # Told what the server's headers say of its limits.
    hear: Callable[[str, Allowed], None] = field(default=_hear_nothing, repr=False)

    def server_model(self, model: str) -> str:
        return model.removeprefix(f"{self.provider}/")

    def secrets(self) -> Iterator[str]:
        """All that it sends and nobody may be told: the key, and what an address has before its host."""
        yield self.api_key or ""
        url = URL(self.base_url)
        yield url.password or url.user or ""
        if sent := aiohttp.BasicAuth.from_url(url):
            yield sent.encode().removeprefix("Basic ")

    def facts(self, engine_name: str) -> Mapping[str, str]:
        """What a run stores of it; never a key or a password."""
        return {
            "engine": engine_name,
            "engine_version": f"aiohttp {aiohttp.__version__}",
            "provider": self.provider,
            "base_url": str(URL(self.base_url.rstrip("/")).with_user(None).with_query(None)),
        }


def bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a protocol carries the key and tells what is wrong; a name says whose key it cannot go without."""

    key_headers: Callable[[str], Mapping[str, str]] = bearer
    read_error: Callable[[bytes], SaidError] = read_plain_error
    needs_key_of: str = ""


class HttpExchange:
    """A pool of connections; made inside a running event loop and closed by `close`."""

    def __init__(self, endpoint: Endpoint, dialect: Dialect) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._base_url = endpoint.base_url.rstrip("/")
        # Servers like to repeat the key that they refuse, and some tell all the headers that they got.
        self._traces = KeyTraces(*endpoint.secrets())
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
        return (await self.ask(path, body)).document

    async def ask(self, path: str, body: Json, stream: AnswerStream | None = None) -> HttpAnswer:
        """As `post`, with its times; `stream` is what a streamed answer becomes, where one was asked for."""
        return await self._exchange("POST", path, orjson.dumps(body), stream)

    async def close(self) -> None:
        await self._session.close()

    async def _exchange(
        self, method: str, path: str, payload: bytes | None, stream: AnswerStream | None = None
    ) -> HttpAnswer:
        """One request; cancelling it closes the connection, by which a server knows that nobody waits."""
        self._require_key()
        try:
            return await self._request(method, path, payload, stream)
        except BrokenOff as error:
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
    ) -> HttpAnswer:
        sent = time.monotonic()
        # A redirect is not followed: it could carry the key to another host.
        async with self._session.request(
            method, self._base_url + path, data=payload, allow_redirects=False
        ) as response:
            if allowed := read_allowed(response.headers):
                self._endpoint.hear(self._base_url, allowed)
            if stream is not None and is_streamed(response):
                reading = StreamReading(stream, sent, self._endpoint.idle_timeout_seconds)
                answer = await reading.read(response.content)
                # A key may have come in pieces.
                return replace(answer, document=self._read(orjson.dumps(answer.document)))
            body = await read_body(response.content, len(payload or b""))
        seconds = time.monotonic() - sent
        if response.status >= 300:
            raise self._failure(response.status, response.headers, body)
        return HttpAnswer(self._read(body), seconds)

    def _read(self, body: bytes) -> Json:
        return read_document(self._traces.out_of(body))

    def _failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, is_midway: bool = False
    ) -> engine.EngineFailure:
        said = self._dialect.read_error(self._traces.out_of(body))
        wait = read_retry_after(headers, time.time())
        variable = self._endpoint.api_key_variable
        return failure_of(ErrorAnswer(status, said, variable, wait, is_midway=is_midway))

    def _require_key(self) -> None:
        provider, variable = self._dialect.needs_key_of, self._endpoint.api_key_variable
        if provider and not self._endpoint.api_key:
            advice = f"set {variable} where the worker runs" if variable else "name its variable in the pool"
            raise engine.ModelRefused(f"API key not configured for {provider}: {advice}.")

    @property
    def _host(self) -> str:
        url = URL(self._base_url)
        return f"{url.host}:{url.port}"
