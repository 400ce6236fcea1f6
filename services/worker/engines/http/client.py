"""The HTTP client of the path of samples: sends a request, returns its JSON or raises its failure."""

import time
from dataclasses import replace

import aiohttp
import orjson

from proctor.values.plain import Json
from services.worker.engines.http.error_bodies import AnswerError, refuse_error
from services.worker.engines.http.ports import AnswerStream
from services.worker.engines.http.responses import HttpResponse, StreamReading, is_streamed, read_body
from services.worker.engines.http.server import Server


class HttpClient:
    """A pool of connections; create it inside a running event loop."""

    def __init__(self, server: Server) -> None:
        self._server = server
        endpoint = server.endpoint
        self._idle_timeout_seconds = endpoint.idle_timeout_seconds
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=endpoint.connections, keepalive_timeout=60),
            timeout=aiohttp.ClientTimeout(
                total=endpoint.timeout_seconds, sock_connect=endpoint.connect_timeout_seconds
            ),
            headers=server.headers,
            # No cookies: a sample must not depend on those before it.
            cookie_jar=aiohttp.DummyCookieJar(),
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
        except aiohttp.ClientPayloadError as error:
            raise server.cut_off() from error
        except aiohttp.InvalidURL as error:
            raise server.invalid_url() from error
        except (aiohttp.ClientError, OSError) as error:
            raise server.unreachable(error) from error

    async def close(self) -> None:
        await self._session.close()

    async def _request(self, path: str, content: Json, stream: AnswerStream | None) -> HttpResponse:
        server, sent, payload = self._server, time.monotonic(), orjson.dumps(content)
        # A redirect is not followed: it could carry the key to another host.
        async with self._session.post(
            server.base_url + path, data=aiohttp.BytesPayload(payload), allow_redirects=False
        ) as response:
            server.note_limits(response.headers)
            if stream is not None and is_streamed(response):
                reading = StreamReading(stream, sent, self._idle_timeout_seconds)
                answer = await reading.read(response.content)
                # Only the whole document is redacted, since a key may be split between events.
                return replace(answer, document=server.read(orjson.dumps(answer.document)))
            body = await read_body(response.content, len(payload))
        seconds = time.monotonic() - sent
        if response.status >= 300:
            raise server.failure(response.status, response.headers, body, request=content)
        document = server.read(body)
        refuse_error(document)
        return HttpResponse(document, seconds)
