"""Receivers of notices on loopback: an HTTP server that answers as it is told, and a mail server."""

import asyncio
import base64
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import default

from aiohttp import web
from aiosmtpd.smtp import SMTP, Envelope, Session


@dataclass
class HttpReceiver:
    """`answers` are the statuses of the next requests; then 204."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.paths.append(request.path)
        status = self.answers.pop(0) if self.answers else 204
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else {})


@asynccontextmanager
async def http_receiver() -> AsyncIterator[HttpReceiver]:
    receiver = HttpReceiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    receiver.url = f"http://127.0.0.1:{port}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver checks it: https://github.com/standard-webhooks/standard-webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    code = base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
    return f"v1,{code}" in headers["webhook-signature"].split(" ")


class _Mailbox:
    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Message | EmailMessage]] = []
        self.refusals: list[str] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802, ARG002  # aiosmtpd's
        if self.refusals:
            return self.refusals.pop(0)
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append((list(envelope.rcpt_tos), BytesParser(policy=default).parsebytes(content)))
        return "250 OK"


@dataclass
class MailReceiver:
    port: int
    box: _Mailbox


@asynccontextmanager
async def mail_receiver() -> AsyncIterator[MailReceiver]:
    box = _Mailbox()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(box), "127.0.0.1", 0)
    try:
        yield MailReceiver(server.sockets[0].getsockname()[1], box)
    finally:
        server.close()
        await server.wait_closed()
