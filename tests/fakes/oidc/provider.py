"""An OpenID provider that speaks the protocol over HTTP on loopback: codes with PKCE, devices, refreshes.

Whoever asks is signed in as the `user` that a test has set; nobody has to type a password.
"""

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus, urlencode

from aiohttp import BasicAuth, web
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT_ID = "proctor"


def _error(word: str) -> web.Response:
    return web.json_response({"error": word}, status=400)


@dataclass
class OidcProvider:
    """`user` are the claims of who signs in now. A device is approved once `approves_devices` is set."""

    issuer: str = ""
    secret: str = ""
    # How clients prove themselves; discovery names none where it is empty, and that is by the header.
    methods: list[str] = field(default_factory=lambda: ["client_secret_basic", "client_secret_post"])
    user: dict[str, Any] = field(default_factory=lambda: {"sub": "ann", "groups": ["evals"]})
    approves_devices: bool = False
    is_away: bool = False
    # Cleared: connections are taken, and nothing is answered.
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    other_keys: list[dict[str, str]] = field(default_factory=list)
    lasts_seconds: int = 300
    # That of the access token; 0: as the other one's.
    access_lasts_seconds: int = 0
    keys: list[RSAKey | ECKey] = field(default_factory=list)
    key_requests: int = 0
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: dict[str, dict[str, Any]] = field(default_factory=dict)
    refreshes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.answers.set()
        self.rotate()

    def rotate(self, kind: type[RSAKey | ECKey] = RSAKey) -> None:
        """Signs by a new key, and forgets the one before the last."""
        kid = secrets.token_hex(4)
        made: RSAKey | ECKey
        if kind is ECKey:
            made = ECKey.generate_key("P-256", {"kid": kid, "alg": "ES256"})
        else:
            made = RSAKey.generate_key(2048, {"kid": kid, "alg": "RS256", "use": "sig"})
        self.keys = [made, *self.keys[:1]]

    def token(self, *, key: RSAKey | ECKey | None = None, **claims: Any) -> str:
        """An ID token of the user; claims that are None are left out."""
        now, signing = int(time.time()), key or self.keys[0]
        usual = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + self.lasts_seconds}
        said = {name: value for name, value in {**usual, **self.user, **claims}.items() if value is not None}
        algorithm = "ES256" if isinstance(signing, ECKey) else "RS256"
        return jwt.encode({"alg": algorithm, "kid": signing.kid}, said, signing, algorithms=[algorithm])

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._outage])
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/keys", self._keys)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/device", self._device)
        app.router.add_post("/token", self._token)
        return app

    @web.middleware
    async def _outage(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.is_away:
            return web.Response(status=503)
        self.waiting += 1
        await self.answers.wait()
        self.waiting -= 1
        answered: web.StreamResponse = await handler(request)
        return answered

    async def _discovery(self, _: web.Request) -> web.Response:
        places = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "jwks_uri": "keys",
            "device_authorization_endpoint": "device",
        }
        addresses = {name: f"{self.issuer}/{place}" for name, place in places.items()}
        methods = {"token_endpoint_auth_methods_supported": self.methods} if self.methods else {}
        return web.json_response({"issuer": self.issuer, **addresses, **methods})

    async def _keys(self, _: web.Request) -> web.Response:
        self.key_requests += 1
        shown = [key.as_dict(private=False) for key in self.keys]
        return web.json_response({"keys": [*self.other_keys, *shown]})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = request.query
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(8)
        self.codes[code] = {**asked, "user": dict(self.user)}
        back = urlencode({"code": code, "state": asked["state"]})
        raise web.HTTPFound(f"{asked['redirect_uri']}?{back}")

    async def _device(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["client_id"] == CLIENT_ID
        code, shown = secrets.token_urlsafe(8), "WDJB-MJHT"
        self.devices[code] = {"polls": 0}
        address = f"{self.issuer}/device"
        return web.json_response(
            {
                "device_code": code,
                "user_code": shown,
                "verification_uri": address,
                "verification_uri_complete": f"{address}?user_code={shown}",
                "expires_in": 60,
                "interval": 0,
            }
        )

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        if self._proof(request, form) != (CLIENT_ID, self.secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        match form["grant_type"]:
            case "authorization_code":
                return self._by_code(form)
            case "urn:ietf:params:oauth:grant-type:device_code":
                return self._by_device(form)
            case "refresh_token":
                # Each one is taken once.
                known = self.refreshes.pop(form["refresh_token"], None)
                return self._tokens(known["user"]) if known else _error("invalid_grant")
        return _error("unsupported_grant_type")

    def _proof(self, request: web.Request, form: Mapping[str, str]) -> tuple[str, str]:
        """The client and its secret, by a way that this provider takes."""
        header = request.headers.get("Authorization", "")
        if header and self.methods != ["client_secret_post"]:
            login = BasicAuth.decode(header)
            return unquote_plus(login.login), unquote_plus(login.password)
        is_posted = not self.secret or "client_secret_post" in self.methods
        return form.get("client_id", ""), form.get("client_secret", "") if is_posted else "refused"

    def _by_code(self, form: Mapping[str, str]) -> web.Response:
        asked = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return _error("invalid_grant")
        return self._tokens(asked["user"], nonce=asked["nonce"])

    def _by_device(self, form: Mapping[str, str]) -> web.Response:
        known = self.devices.get(form["device_code"])
        if known is None:
            return _error("expired_token")
        # The person needs a moment.
        known["polls"] += 1
        if known["polls"] == 1 or not self.approves_devices:
            return _error("authorization_pending")
        del self.devices[form["device_code"]]
        return self._tokens(dict(self.user))

    def _tokens(self, user: Mapping[str, Any], **claims: Any) -> web.Response:
        refresh = secrets.token_urlsafe(8)
        self.refreshes[refresh] = {"user": user}
        token = self.token(**{**user, **claims})
        return web.json_response(
            {
                "access_token": secrets.token_urlsafe(8),
                "token_type": "Bearer",
                "id_token": token,
                "refresh_token": refresh,
                "expires_in": self.access_lasts_seconds or self.lasts_seconds,
            }
        )


@asynccontextmanager
async def oidc_provider() -> AsyncIterator[OidcProvider]:
    provider = OidcProvider()
    runner = web.AppRunner(provider.application())
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        provider.issuer = f"http://{host}:{port}"
        yield provider
    finally:
        await runner.cleanup()
