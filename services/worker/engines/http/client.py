"""The HTTP client of the path of samples: sends a request, returns its JSON or raises its failure."""

import asyncio
import time
from dataclasses import replace

import orjson

from proctor.values.plain import Json
from services.worker.engines.http.connection import Connection, ResponseCutOff
from services.worker.engines.http.connection_pool import ConnectionPool, InvalidUrl
from services.worker.engines.http.error_bodies import AnswerError, refuse_error
from services.worker.engines.http.ports import AnswerStream
from services.worker.engines.http.responses import HttpResponse, StreamReading, is_streamed, read_body
from services.worker.engines.http.server import Server


class HttpClient:
    """A pool of connections; create it inside a running event loop.

    It follows no redirect, which could carry the key to another host, reads no proxy from the environment
    and keeps no cookie, since a sample must not depend on those before it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        endpoint = server.endpoint
        self._idle_timeout_seconds = endpoint.idle_timeout_seconds
        self._timeout_seconds = endpoint.timeout_seconds
        base_url, basic = endpoint.without_user()
        self._pool = ConnectionPool(
            base_url,
            {**basic, **server.headers},
            size=endpoint.connections,
            connect_timeout_seconds=endpoint.connect_timeout_seconds,
        )

    async def send(self, path: str, body: Json, stream: AnswerStream | None = None) -> HttpResponse:
        """`stream` assembles the answer where streaming was requested.

        Cancelling the request closes the connection, so that the server stops generating.
        """
        server = self._server
        server.require_key()
        try:
            return await self._request(path, body, stream)
        except AnswerError as error:
            raise server.failure_instead(error, request=body) from error
        except TimeoutError as error:
            raise server.timed_out() from error
        except ResponseCutOff as error:
            raise server.cut_off() from error
        except InvalidUrl as error:
            raise server.invalid_url() from error
        except OSError as error:
            raise server.unreachable(error) from error

    async def close(self) -> None:
        self._pool.close()

    async def _request(self, path: str, content: Json, stream: AnswerStream | None) -> HttpResponse:
        server, pool, sent, payload = self._server, self._pool, time.monotonic(), orjson.dumps(content)
        head = pool.head(path, len(payload))
        connection = pool.take_idle() or await self._opened()
        try:
            response = connection.send(head, payload, sent + self._timeout_seconds - time.monotonic())
            await response.begin()
            server.note_limits(response.headers)
            if stream is not None and is_streamed(response):
                reading = StreamReading(stream, sent, self._idle_timeout_seconds)
                answer = await reading.read(response)
                # Only the whole document is redacted, since a key may be split between events.
                return replace(answer, document=server.read(orjson.dumps(answer.document)))
            body = await read_body(response, len(payload))
        finally:
            pool.give_back(connection)
        seconds = time.monotonic() - sent
        if response.status >= 300:
            raise server.failure(response.status, response.headers, body, request=content)
        document = server.read(body)
        refuse_error(document)
        return HttpResponse(document, seconds)

    async def _opened(self) -> Connection:
        async with asyncio.timeout(self._timeout_seconds):
            return await self._pool.take()
