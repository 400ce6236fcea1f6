"""Fake of S3: one bucket in memory, with the few requests that Proctor sends."""

# names are those of the library

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BUCKET = "bucket"
_TIME = "2026-01-01T00:00:00.000Z"
_HTTP_TIME = "Thu, 01 Jan 2026 00:00:00 GMT"


class FakeS3:
    # Of every object.
    written_at = datetime.fromisoformat(_TIME)

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.endpoint = ""
        # After so many objects it takes no more; None: it takes all.
        self.puts_left: int | None = None

    def put(self, key: str, content: bytes) -> bool:
        """Whether it was taken."""
        if self.puts_left is not None:
            if not self.puts_left:
                return False
            self.puts_left -= 1
        self.contents[key] = content
        return True

    def listing(self, prefix: str) -> bytes:
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{_TIME}</LastModified><Size>{len(content)}</Size></Contents>"
            for key, content in self.contents.items()
            if key.startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>".encode()

    def delete(self, request: bytes) -> bytes:
        keys = [key.decode() for key in re.findall(rb"<Key>(.*?)</Key>", request)]
        for key in keys:
            self.contents.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        return f"<DeleteResult>{deleted}</DeleteResult>".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: FakeS3

    def do_PUT(self) -> None:
        is_taken = self.bucket.put(self._key(), self._body())
        self._answer(200 if is_taken else 503, b"" if is_taken else b"<Error><Code>SlowDown</Code></Error>")

    def do_GET(self) -> None:
        if "list-type" in self.path:
            [prefix] = parse_qs(urlsplit(self.path).query)["prefix"]
            self._answer(200, self.bucket.listing(prefix))
            return
        content = self.bucket.contents.get(self._key())
        if content is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, content)
            return
        start, last = int(wanted[1]), int(wanted[2])
        content_range = f"bytes {start}-{last}/{len(content)}"
        self._answer(206, content[start : last + 1], {"Content-Range": content_range})

    def do_POST(self) -> None:
        self._answer(200, self.bucket.delete(self._body()))

    def _key(self) -> str:
        return self.path.partition("?")[0].removeprefix(f"/{BUCKET}/")

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        named = {"Content-Length": str(len(content)), "Last-Modified": _HTTP_TIME, "ETag": '"x"'}
        for name, value in {**named, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """No user may read it."""


@contextmanager
def s3_server() -> Iterator[FakeS3]:
    bucket = FakeS3()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield bucket
        server.shutdown()
        thread.join()
