"""The OpenID provider as the gateway asks it: its addresses, its keys, and the token for a code."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.gateway.http.errors import ProviderAway, ProviderRefused

log = get_logger()
_TIMEOUT_SECONDS = 10.0
# A key set of a large provider has some 10 kB.
_MAX_BYTES = 1024 * 1024
# Providers change their addresses rarely, and keep the old ones for a while.
_KNOWN_SECONDS = 3600.0
# Ways in which a client proves itself.
_BASIC, _POST = "client_secret_basic", "client_secret_post"


class UnknownTokenKey(Exception):
    """The token is signed by a key that was not read yet."""


@dataclass(frozen=True, slots=True)
class Client:
    """This gateway at the provider. A public client has no secret."""

    client_id: str
    secret: str
    redirect_url: str
    scopes: str


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the provider's discovery says."""

    authorization: str
    token: str
    keys: str
    # Whether the secret goes in the header of the request for a token, and not in its form.
    takes_basic: bool = False


class Provider:
    """Asks the provider. What it says of itself is kept for an hour."""

    def __init__(self, issuer: str, client: Client, clock: Clock) -> None:
        self.issuer = issuer
        self.client = client
        self._clock = clock
        self._endpoints: Endpoints | None = None
        self._read_at = 0.0

    async def endpoints(self) -> Endpoints:
        """Raises `ProviderAway`, also for a provider that names itself otherwise."""
        now = self._clock.monotonic()
        if self._endpoints is None or now - self._read_at > _KNOWN_SECONDS:
            found = await self._asked("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            self._endpoints, self._read_at = self._checked(found), now
        return self._endpoints

    async def keys(self) -> Mapping[str, Any]:
        """The JSON Web Key Set. Raises `ProviderAway`."""
        return await self._asked("GET", (await self.endpoints()).keys)

    async def id_token(self, code: str, verifier: str) -> str:
        """The ID token for the code of a sign-in. Raises `ProviderAway` or `ProviderRefused`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": self.client.redirect_url,
        }
        endpoints, client = await self.endpoints(), self.client
        login = None
        if client.secret and endpoints.takes_basic:
            # Each part is encoded as in a form (RFC 6749, section 2.3.1).
            login = httpx.BasicAuth(quote_plus(client.client_id), quote_plus(client.secret))
        else:
            form |= {"client_id": client.client_id}
            form |= {"client_secret": client.secret} if client.secret else {}
        answer = await self._asked("POST", endpoints.token, form, login)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise ProviderRefused
        return token

    def _checked(self, found: Mapping[str, Any]) -> Endpoints:
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        addresses = [str(found.get(name, "")) for name in names]
        scheme = urlsplit(self.issuer).scheme
        # Tokens of another issuer, or keys read in the clear, would be believed.
        if found.get("issuer") != self.issuer or any(urlsplit(each).scheme != scheme for each in addresses):
            log.error(
                "the sign-in provider names itself otherwise", issuer=self.issuer, found=str(found)[:500]
            )
            raise ProviderAway(issuer=self.issuer)
        # Without a list it is basic (OpenID Connect Discovery, section 3); many take both.
        methods = found.get("token_endpoint_auth_methods_supported") or [_BASIC]
        authorization, token, keys = addresses
        return Endpoints(authorization, token, keys, takes_basic=_BASIC in methods and _POST not in methods)

    async def _asked(
        self,
        method: str,
        address: str,
        form: Mapping[str, str] | None = None,
        login: httpx.BasicAuth | None = None,
    ) -> Mapping[str, Any]:
        """A JSON object, of a bounded size. Redirects are not followed."""
        try:
            async with (
                # In all: one that sends a byte now and then would hold whoever waits for it.
                asyncio.timeout(_TIMEOUT_SECONDS),
                httpx.AsyncClient(timeout=_TIMEOUT_SECONDS) as session,
                session.stream(
                    method, address, data=form, headers={"Accept": "application/json"}, auth=login
                ) as response,
            ):
                body = b""
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > _MAX_BYTES:
                        raise ProviderAway(issuer=self.issuer)
        except (httpx.HTTPError, TimeoutError) as error:
            log.warning("the sign-in provider does not answer", issuer=self.issuer, error=repr(error))
            raise ProviderAway(issuer=self.issuer) from error
        if form is not None and response.is_client_error:
            log.info(
                "sign-in refused by the provider",
                status=response.status_code,
                answer=body[:300].decode("latin-1"),
            )
            raise ProviderRefused
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not response.is_success or not isinstance(answer, dict):
            raise ProviderAway(issuer=self.issuer)
        return answer
