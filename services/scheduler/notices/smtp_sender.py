"""Mail by the operator's server. A thread waits for it, since the module of the language blocks."""

import asyncio
import smtplib
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from services.scheduler.notices.errors import NotDelivered
from services.scheduler.notices.notice import Notice, NoticeTarget

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class MailServer:
    """`security` is "starttls", "tls" or "none"."""

    host: str
    port: int
    sender: str
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)


class SmtpSender:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def send(self, target: NoticeTarget, notice: Notice, now: datetime) -> None:
        message = self._message(target, notice, now)
        try:
            await asyncio.to_thread(self._send, message)
        # The server's sentences name mailboxes and policies: they help whoever wants the mail.
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered(f"The mail server did not take it: {error}.") from error

    def _message(self, target: NoticeTarget, notice: Notice, now: datetime) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._server.sender
        message["To"] = target.address
        # A header is one line, and providers' sentences, which texts hold, may have any kind of break.
        message["Subject"] = " ".join(f"Proctor: {notice.text}".split())[:200]
        message["Date"] = format_datetime(now)
        # The same in each attempt: many servers drop a second one.
        domain = self._server.sender.rpartition("@")[2] or "proctor"
        message["Message-ID"] = f"<{notice.notice_id}@{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        facts = "\n".join(f"{name}: {value}" for name, value in notice.facts.items())
        message.set_content(f"{notice.text}\n\n{facts}\n")
        return message

    def _send(self, message: EmailMessage) -> None:
        server = self._server
        tls = ssl.create_default_context()
        if server.security == "tls":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host, server.port, timeout=_SECONDS, context=tls
            )
        else:
            connection = smtplib.SMTP(server.host, server.port, timeout=_SECONDS)
        with connection:
            if server.security == "starttls":
                connection.starttls(context=tls)
            if server.user:
                connection.login(server.user, server.password)
            connection.send_message(message)
