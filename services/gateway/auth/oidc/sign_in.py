"""OpenID Connect at the gateway: tokens of callers, and the sign-in of browsers by a code with PKCE."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from proctor.values.names.user import Caller
from services.common.api_keys import Pepper
from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.gateway.auth.oidc.provider import Provider, UnknownTokenKey
from services.gateway.http.errors import ProviderAway, SignInOver, TokenUnknown

if TYPE_CHECKING:
    from services.gateway.auth.oidc.tokens import Tokens

log = get_logger()
# Keys that were withdrawn are refused so much later at the most.
_KEYS_SECONDS = 900.0
# Tokens with invented keys ask the provider no more often.
_ASK_AGAIN_SECONDS = 10.0
# Known keys serve meanwhile: who calls waits no longer for a provider that is slow, and not at all for one
# that did not answer last time.
_PATIENCE_SECONDS = 2.0
# The person may have to find a second factor.
_SIGN_IN_SECONDS = 600


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """Where the browser goes, and the text that it keeps until it is back."""

    address: str
    kept: str
    state: str


class OidcSignIn:
    """Joins the provider and its tokens."""

    def __init__(self, *, provider: Provider, tokens: "Tokens", pepper: Pepper, clock: Clock) -> None:
        self._provider = provider
        self._tokens = tokens
        self._pepper = pepper
        self._clock = clock
        self._asking: asyncio.Task[None] | None = None
        self._read_at = self._asked_at = -_KEYS_SECONDS
        self._has_keys = self._answered = False

    @property
    def takes_browsers(self) -> bool:
        return bool(self._provider.client.redirect_url)

    @property
    def by_tls(self) -> bool:
        """Whether browsers reach the gateway by TLS: no request says so behind a proxy that ends it."""
        return self._provider.client.redirect_url.startswith("https:")

    async def caller_of(self, token: str) -> Caller:
        """Raises `TokenUnknown`, `TokenOver`, `NoRoleByGroups`; `ProviderAway` until keys are known."""
        await self._freshen()
        try:
            return self._tokens.caller_of(token)
        except UnknownTokenKey:
            # The provider may have begun to sign by another one.
            await self._read_keys()
        try:
            return self._tokens.caller_of(token)
        except UnknownTokenKey as error:
            raise TokenUnknown from error

    async def begin(self, next_address: str) -> BegunSignIn:
        """Raises `ProviderAway`."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        client = self._provider.client
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        asked = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": client.redirect_url,
            "scope": client.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        address = (await self._provider.endpoints()).authorization
        joint = "&" if "?" in address else "?"
        ends = int(self._clock.now().timestamp()) + _SIGN_IN_SECONDS
        kept = self._signed([state, nonce, verifier, next_address, ends])
        return BegunSignIn(f"{address}{joint}{urlencode(asked)}", kept, state)

    async def finish(self, kept: str, state: str, code: str) -> tuple[Caller, str]:
        """The caller and the address that follows.

        Raises `SignInOver` for a sign-in that this browser has not begun, and what `caller_of` and
        `Provider.id_token` raise.
        """
        expected, nonce, verifier, next_address = self._read(kept)
        if not hmac.compare_digest(expected.encode(), state.encode(errors="replace")):
            raise SignInOver
        token = await self._provider.id_token(code, verifier)
        caller = await self.caller_of(token)
        if self._tokens.claims_of(token).get("nonce") != nonce:
            raise TokenUnknown
        return caller, next_address

    async def _freshen(self) -> None:
        """Known keys are renewed while they serve. Raises `ProviderAway` until there are any."""
        if self._clock.monotonic() - self._read_at <= _KEYS_SECONDS:
            return
        if not self._has_keys:
            await self._read_keys()
        elif (asking := self._ask_once()) and self._answered:
            await asyncio.wait({asking}, timeout=_PATIENCE_SECONDS)

    async def _read_keys(self) -> None:
        """Raises `ProviderAway` where none are known afterwards."""
        if asking := self._ask_once():
            # Others wait for it too: who goes away does not end it.
            await asyncio.wait({asking})
        if not self._has_keys:
            raise ProviderAway(issuer=self._provider.issuer)

    def _ask_once(self) -> asyncio.Task[None] | None:
        """The one question to the provider that all wait for; None where one was answered just now."""
        if self._asking is None and self._clock.monotonic() - self._asked_at >= _ASK_AGAIN_SECONDS:
            self._asking = asyncio.create_task(self._ask(), name="read keys of the sign-in provider")
        return self._asking

    async def _ask(self) -> None:
        try:
            self._tokens.learn(await self._provider.keys())
        except (ProviderAway, ValueError) as error:
            self._answered = False
            log.warning("keys of the sign-in provider not read", error=repr(error))
        else:
            self._has_keys = self._answered = True
            self._read_at = self._clock.monotonic()
        finally:
            # From its end: a provider that is slow would be asked without a pause.
            self._asked_at = self._clock.monotonic()
            self._asking = None

    def _signed(self, values: list[str | int]) -> str:
        content = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
        return f"{content}.{self._pepper.code(content).hex()}"

    def _read(self, kept: str) -> tuple[str, str, str, str]:
        content, _, code = kept.partition(".")
        # As bytes: of texts it takes ASCII only, and a cookie may hold anything.
        if not hmac.compare_digest(self._pepper.code(content).hex().encode(), code.encode()):
            raise SignInOver
        state, nonce, verifier, next_address, ends = json.loads(base64.urlsafe_b64decode(content))
        if self._clock.now().timestamp() > ends:
            raise SignInOver
        return state, nonce, verifier, next_address
