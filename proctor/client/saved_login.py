"""The token of a sign-in at an OpenID provider: kept in a file of its own for one gateway, and refreshed."""

import base64
import fcntl
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from proctor.client.errors import Refused, Unreachable

_TIMEOUT_SECONDS = 15.0
_MAX_BYTES = 1024 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# A call that begins now must not end with the token.
_REFRESHED_BEFORE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SavedLogin:
    """`ends_at` is in seconds since 1970. Sent to the gateway of this address, and to no other."""

    gateway: str
    issuer: str
    client_id: str
    token: str
    refresh_token: str
    ends_at: float


def login_file(environ: Mapping[str, str] = os.environ) -> Path:
    config = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if config else Path(environ.get("HOME", "~")).expanduser() / ".config"
    return folder / "proctor" / "login.json"


def read_login(file: Path) -> SavedLogin | None:
    """None where nobody is signed in, or where the file is none of ours."""
    try:
        return SavedLogin(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_login(file: Path, login: SavedLogin) -> None:
    """Readable by its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        json.dump(asdict(login), opened)
    new.replace(file)


def token_for(gateway: str, file: Path) -> str:
    """The token of who is signed in at this gateway, refreshed where it ends soon; "" for nobody.

    Raises `Refused` where the provider gives no new one.
    """
    login = read_login(file)
    if login is None or login.gateway != gateway:
        return ""
    if _lasts(login):
        return login.token
    # A refresh token is good for once: two programs at a time would end the sign-in of both.
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        login = read_login(file)
        if login is None or login.gateway != gateway:
            return ""
        return login.token if _lasts(login) else _refreshed(login, file)


def _lasts(login: SavedLogin) -> bool:
    return login.ends_at - time.time() > _REFRESHED_BEFORE_SECONDS


def _refreshed(login: SavedLogin, file: Path) -> str:
    if not login.refresh_token:
        raise Refused("Your sign-in is over. Sign in again: proctor login")
    form = {
        "grant_type": "refresh_token",
        "refresh_token": login.refresh_token,
        "client_id": login.client_id,
    }
    answer = ask(endpoints(login.issuer)["token_endpoint"], form)
    if "id_token" not in answer:
        raise Refused("Your sign-in is over. Sign in again: proctor login")
    refreshed = login_of(answer, replace(login, token=""))
    write_login(file, refreshed)
    return refreshed.token


def login_of(answer: Mapping[str, Any], login: SavedLogin) -> SavedLogin:
    """The login with what a token endpoint has answered. A refresh token that is not replaced stays."""
    refresh = str(answer.get("refresh_token", login.refresh_token))
    token = str(answer["id_token"])
    return replace(login, token=token, refresh_token=refresh, ends_at=_end_of(token))


def _end_of(token: str) -> float:
    """In seconds since 1970, as the token says: `expires_in` is that of the access token, which is not sent.

    Whether it is true is the gateway's to find out. 0 for a token that does not say it.
    """
    try:
        content = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0


def endpoints(issuer: str) -> Mapping[str, str]:
    """What the provider's discovery says. Raises `Refused` or `Unreachable`."""
    _check(issuer)
    found = ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != issuer:
        raise Refused(f"{issuer} is no OpenID provider of this name: it says {found.get('issuer')!r:.200}.")
    return {name: str(value) for name, value in found.items() if name.endswith("_endpoint")}


def ask(address: str, form: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """A JSON object, also that of a refusal. Raises `Refused` or `Unreachable`."""
    _check(address)
    body = None if form is None else urlencode(form).encode()
    request = Request(address, data=body, headers={"Accept": "application/json"})  # noqa: S310  # checked above
    try:
        with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_SECONDS) as response:
            content = response.read(_MAX_BYTES)
    except HTTPError as error:
        content = error.read(_MAX_BYTES)
    except (URLError, OSError) as error:
        raise Unreachable(f"The sign-in provider {address} does not answer: {error}") from error
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Refused(f"{address} answers as no OpenID provider does.")
    return answer


class _NoRedirects(HTTPRedirectHandler):
    """A provider does not move: who redirects would get the token."""

    def redirect_request(self, *_: object) -> None:
        return None


def _check(address: str) -> None:
    parts = urlsplit(address)
    is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if parts.scheme != "https" and not is_local:
        raise Refused(f"{address} must begin with https://: tokens pass there.")
