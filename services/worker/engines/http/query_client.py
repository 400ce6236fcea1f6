"""The HTTP client for everything but samples: lists of models, and by them whether a server can be reached.

Samples go over connections of the worker's own (decision 0015).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
import orjson

from proctor.values.plain import Json
from services.worker.engines.errors import ProviderFailed
from services.worker.engines.http.error_bodies import AnswerError, refuse_error
from services.worker.engines.http.server import Server

# Lists are asked for rarely; Ollama's models are shown four at a time.
_CONNECTIONS = 4
_PLAIN = "identity"


class ResponseRefused(Exception):
    """The response is larger than any that is waited for, or compressed though that was not asked for."""


class ResponseCutOff(Exception):
    """The connection broke in the middle of the response."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """`seconds` are for a whole exchange, `max_bytes` for the body of its response."""

    seconds: float = 30.0
    connect_seconds: float = 10.0
    max_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueryResponse:
    """`headers` are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpQueries:
    """Follows no redirect, reads no proxy or password from the environment and keeps no cookie.

    Each of these could carry a key to another host.
    """

    def __init__(self, headers: Mapping[str, str], limits: QueryLimits) -> None:
        self._headers = headers
        self._limits = limits
        # Made for the first request: its certificates take longer to load than a list to read.
        self._client: httpx.AsyncClient | None = None

    async def send(
        self, method: str, url: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> QueryResponse:
        """Raises the errors of this module, `TimeoutError`, `httpx.HTTPError` or `httpx.InvalidURL`."""
        # httpx limits the time between two parts of a response, and not the whole.
        async with (
            asyncio.timeout(self._limits.seconds),
            self._opened().stream(method, url, content=content, headers=headers) as response,
        ):
            body = await _read_bounded(response, self._limits.max_bytes)
        return QueryResponse(response.status_code, response.headers, body)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                # A small compressed body may unpack to a huge one, and at once.
                headers={**self._headers, "Accept-Encoding": _PLAIN},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                follow_redirects=False,
                # Variables of proxies and `.netrc` are for the user's programs and not for a worker's key.
                trust_env=False,
                timeout=httpx.Timeout(self._limits.seconds, connect=self._limits.connect_seconds),
                limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            )
        return self._client


async def _read_bounded(response: httpx.Response, max_bytes: int) -> bytes:
    if response.headers.get("Content-Encoding", _PLAIN).lower() != _PLAIN:
        raise ResponseRefused("The server compressed its answer, though it was asked not to.")
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > max_bytes:
                raise ResponseRefused(f"The server's answer has more than {max_bytes:,} bytes.")
    except (httpx.RemoteProtocolError, httpx.ReadError) as error:
        raise ResponseCutOff from error
    return bytes(body)


class QueryClient:
    """Raises the same failures as the path of samples, without a key in them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        endpoint, default = server.endpoint, QueryLimits()
        limits = QueryLimits(min(default.seconds, endpoint.timeout_seconds), endpoint.connect_timeout_seconds)
        # Basic, if the URL has a user and a password; a key wins.
        self._url, basic = endpoint.without_user()
        self._queries = HttpQueries({**basic, **server.headers}, limits)

    async def get(self, path: str) -> Json:
        return await self._exchange("GET", path, None)

    async def post(self, path: str, body: Json) -> Json:
        return await self._exchange("POST", path, orjson.dumps(body))

    async def close(self) -> None:
        await self._queries.close()

    async def _exchange(self, method: str, path: str, payload: bytes | None) -> Json:
        server = self._server
        server.require_key()
        try:
            response = await self._queries.send(method, self._url + path, payload)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise server.timed_out() from error
        except ResponseCutOff as error:
            raise server.cut_off() from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise server.invalid_url() from error
        except httpx.HTTPError as error:
            raise server.unreachable(error) from error
        except ResponseRefused as error:
            raise ProviderFailed(str(error)) from error
        server.note_limits(response.headers)
        if response.status >= 300:
            raise server.failure(response.status, response.headers, response.body)
        document = server.read(response.body)
        try:
            refuse_error(document)
        except AnswerError as error:
            raise server.failure_instead(error) from error
        return document
