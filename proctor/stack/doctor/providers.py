"""Which providers are set up here, and whether their servers answer. No key is sent, and none is shown."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from proctor.stack.doctor.finding import Finding, fine, warning
from proctor.stack.pools.providers import REMOTE_PROVIDERS, RemoteProvider

LIMIT_SECONDS = 3.0


async def examine_providers(environ: Mapping[str, str]) -> list[Finding]:
    configured = [provider for provider in REMOTE_PROVIDERS.values() if provider.is_configured(environ)]
    others = [provider for provider in REMOTE_PROVIDERS.values() if provider not in configured]
    found = await asyncio.gather(*(_examine(provider, environ) for provider in configured))
    if others:
        ways = ", ".join(f"{provider.name} ({_way_of(provider)})" for provider in others)
        found.append(fine("other providers", f"not set up, by the variable that would: {ways}"))
    return found


async def _examine(provider: RemoteProvider, environ: Mapping[str, str]) -> Finding:
    name, address = f"provider {provider.name}", provider.address(environ)
    keys = [key for key in provider.key_variables if environ.get(key) or environ.get(f"{key}_FILE")]
    key = f"key in {keys[0]}" if keys else "no key"
    if not address:
        return warning(name, f"{key}, but no address", f"set {provider.url_variable} to its server")
    problem = await _why_silent(address)
    if problem:
        is_far = address == provider.base_url and address.startswith("https://")
        cure = "see that this machine reaches it" if is_far else "start it"
        says = f"{address} does not answer: {problem}; {key}"
        return warning(name, says, f"{cure}, or correct {provider.url_variable}")
    if not keys and address == provider.base_url and address.startswith("https://"):
        return warning(name, f"{address} answers; no key", f"set {provider.key_variables[0]}")
    return fine(name, f"{address} answers; {key}")


async def _why_silent(address: str) -> str:
    """Connects as a client would, encryption included; empty when that works."""
    try:
        parts = urlsplit(address)
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        async with asyncio.timeout(LIMIT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port, ssl=is_secure or None)
        writer.close()
    except TimeoutError:
        return f"nothing within {LIMIT_SECONDS:.0f} s"
    except ConnectionRefusedError:
        return "no program listens there"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def _way_of(provider: RemoteProvider) -> str:
    return provider.key_variables[0] if provider.base_url.startswith("https://") else provider.url_variable
