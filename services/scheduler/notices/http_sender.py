"""Webhooks and Slack: a POST without redirects, signed as Standard Webhooks say.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
"""

import base64
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import aiohttp

from proctor.values.names.notices import SECRET_PREFIX
from services.common.api_keys import Pepper
from services.scheduler.notices.errors import NotDelivered
from services.scheduler.notices.http_addresses import AddressRefused, CheckedResolver, CheckedSockets, Network
from services.scheduler.notices.notice import Notice, NoticeTarget

_SECONDS = 10.0
_GONE = 410
_READ_BYTES = 1024


class WebhookSigner:
    """The key of each target follows from the installation's: no table holds it."""

    def __init__(self, caller_key: bytes) -> None:
        self._pepper = Pepper(caller_key, b"notices")

    def secret(self, target_id: str) -> str:
        return SECRET_PREFIX + base64.b64encode(self._pepper.code(target_id)).decode()

    def headers(self, target_id: str, notice_id: str, body: bytes, now: datetime) -> Mapping[str, str]:
        seconds = str(int(now.timestamp()))
        signed = b".".join((notice_id.encode(), seconds.encode(), body))
        code = base64.b64encode(hmac.digest(self._pepper.code(target_id), signed, "sha256")).decode()
        return {
            "webhook-id": notice_id,
            "webhook-timestamp": seconds,
            "webhook-signature": f"v1,{code}",
        }


class HttpPost:
    """Posts to addresses that are public or allowed, one connection each."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Raises `NotDelivered` for all but an answer from 200 to 299."""
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(self._allowed),
            socket_factory=CheckedSockets(self._allowed),
            use_dns_cache=False,
            force_close=True,
        )
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector,
                    timeout=aiohttp.ClientTimeout(total=_SECONDS),
                    trust_env=False,
                    # A small answer may unpack to a large one.
                    auto_decompress=False,
                ) as session,
                session.post(
                    url,
                    data=body,
                    headers={"Content-Type": "application/json", "User-Agent": "Proctor", **headers},
                    allow_redirects=False,
                ) as response,
            ):
                await response.content.read(_READ_BYTES)
                status = response.status
        except TimeoutError as error:
            raise NotDelivered(f"It did not answer within {_SECONDS:g} s.") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotDelivered(_sentence(error)) from error
        if not 200 <= status < 300:
            followed = " Redirects are not followed." if 300 <= status < 400 else ""
            raise NotDelivered(f"It answered {status}.{followed}", is_final=status == _GONE)


class WebhookSender:
    def __init__(self, post: HttpPost, signer: WebhookSigner) -> None:
        self._post = post
        self._signer = signer

    async def send(self, target: NoticeTarget, notice: Notice, now: datetime) -> None:
        body = json.dumps(
            {
                "id": notice.notice_id,
                "type": notice.event.value,
                "timestamp": notice.created_at.isoformat(),
                "data": {"text": notice.text, **notice.facts},
            }
        ).encode()
        headers = self._signer.headers(target.target_id, notice.notice_id, body, now)
        await self._post.post(target.address, body, headers)


class SlackSender:
    def __init__(self, post: HttpPost) -> None:
        self._post = post

    async def send(self, target: NoticeTarget, notice: Notice, now: datetime) -> None:  # noqa: ARG002  # the port's
        # Its markup begins with these three; a name of a run must not mention a channel.
        text = notice.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        page = notice.facts.get("page", "")
        body = json.dumps({"text": f"{text} {page}".strip()}).encode()
        await self._post.post(target.address, body, {})


def _sentence(error: Exception) -> str:
    cause = error.__cause__ or error
    if isinstance(cause, AddressRefused):
        return f"{cause}; the operator has to allow it."
    # The sentences of the others have the URL, which may be a secret, or bytes of the answer.
    if isinstance(error, OSError):
        return f"It could not be reached: {error}."
    if isinstance(error, aiohttp.InvalidURL):
        return "Its URL names no host that can be asked."
    return "It did not answer in HTTP."
