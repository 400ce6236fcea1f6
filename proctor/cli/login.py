"""`proctor login` and `proctor logout`: sign in at an OpenID provider, with a browser on any device."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from proctor.cli.gateway import find_gateway
from proctor.cli.render.terminal import Terminal, execute, say
from proctor.client.errors import Refused
from proctor.client.saved_login import SavedLogin, ask, endpoints, login_file, login_of, write_login

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
# What providers leave out, by RFC 8628.
_USUAL_INTERVAL_SECONDS = 5.0
_SLOWER_SECONDS = 5.0
_SENTENCES = {
    "access_denied": "The sign-in was refused at the provider.",
    "expired_token": "Nobody signed in in time. Begin again: proctor login",
}


def login(
    issuer: Annotated[
        str, typer.Option(envvar="PROCTOR_OIDC_ISSUER", help="Address of the OpenID provider of the gateway.")
    ],
    client_id: Annotated[
        str, typer.Option(envvar="PROCTOR_OIDC_CLIENT_ID", help="Name of Proctor at the provider.")
    ],
    scope: Annotated[str, typer.Option(help="What is asked of the provider.")] = (
        "openid profile email offline_access"
    ),
    gateway: Annotated[
        str | None, typer.Option(envvar="PROCTOR_GATEWAY", help="host:port of the gateway.")
    ] = None,
) -> None:
    """Sign in at the gateway's OpenID provider: open an address in any browser, and enter a code."""
    terminal = Terminal(is_json=False)

    async def work() -> None:
        begun = SavedLogin(find_gateway(gateway), issuer, client_id, "", "", 0.0)
        made = await _signed_in(terminal.out, begun, scope)
        write_login(login_file(), made)
        say(terminal.out, f"You are signed in at {made.gateway}.")

    execute(terminal, work)


def logout() -> None:
    """Forget the sign-in of `proctor login`."""
    terminal = Terminal(is_json=False)

    async def work() -> None:
        login_file().unlink(missing_ok=True)
        say(terminal.out, "You are signed out.")

    execute(terminal, work)


async def _signed_in(console: Console, begun: SavedLogin, scope: str) -> SavedLogin:
    """By RFC 8628. Raises `Refused` or `Unreachable`."""
    places = await asyncio.to_thread(endpoints, begun.issuer)
    if "device_authorization_endpoint" not in places:
        raise Refused(f"{begun.issuer} signs in no programs: it has no device_authorization_endpoint.")
    asked = {"client_id": begun.client_id, "scope": scope}
    device = await asyncio.to_thread(ask, places["device_authorization_endpoint"], asked)
    if "device_code" not in device:
        raise _refusal(device)
    address = device.get("verification_uri_complete") or device.get("verification_uri", "")
    say(console, f"Open {address} in a browser, and confirm the code {device.get('user_code', '')}.")
    form = {"grant_type": _GRANT, "device_code": str(device["device_code"]), "client_id": begun.client_id}
    interval = float(device.get("interval", _USUAL_INTERVAL_SECONDS))
    ends_at = time.monotonic() + float(device.get("expires_in", 600))
    while time.monotonic() < ends_at:
        await asyncio.sleep(interval)
        answer = await asyncio.to_thread(ask, places["token_endpoint"], form)
        if "id_token" in answer:
            return login_of(answer, begun)
        match answer.get("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                interval += _SLOWER_SECONDS
            case _:
                raise _refusal(answer)
    raise Refused(_SENTENCES["expired_token"])


def _refusal(answer: Mapping[str, Any]) -> Refused:
    word = str(answer.get("error", "no token"))
    said = str(answer.get("error_description") or word)
    return Refused(_SENTENCES.get(word, f"The sign-in provider refused: {said:.300}"))
