"""Checks of vLLM, the GPU, the starter model and providers. No key is sent, and none is shown."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from proctor.stack.defaults import starter_model_dir
from proctor.stack.doctor.finding import Finding, fine, warning
from proctor.stack.vllm.environment import find_vllm_python
from proctor.stack.vllm.gpus import list_gpus
from proctor.starter.make_rows import is_current
from proctor.values.providers.remote_providers import REMOTE_PROVIDERS, RemoteProvider

_MAKE = "`proctor vllm install` makes it; models of providers are served without it"
_DISTRIBUTION = re.compile(r"vllm-(?P<version>\d.*)\.dist-info")


# All providers are checked at the same time, so this limits the whole check.
TIMEOUT_SECONDS = 3.0


def examine_vllm(environ: Mapping[str, str]) -> Finding:
    python = find_vllm_python(environ)
    if python is None or not python.exists():
        where = f"{python} does not exist" if python else "no environment with vLLM for this release"
        return warning("vllm", f"{where}: no model can be loaded on this machine", _MAKE)
    version = vllm_version(python)
    if version is None:
        return warning("vllm", f"{python} has no vLLM", _MAKE)
    return fine("vllm", f"vLLM {version} ({python})")


def vllm_version(python: Path) -> str | None:
    """Read from file names, because importing vLLM takes seconds. The longest version names the build."""
    folders = python.parent.parent.glob("lib/python3*/site-packages/vllm-*.dist-info")
    versions = [match["version"] for folder in folders if (match := _DISTRIBUTION.fullmatch(folder.name))]
    return max(versions, key=len, default=None)


def examine_gpu(environ: Mapping[str, str]) -> Finding:
    gpus = list_gpus()
    python = find_vllm_python(environ)
    version = vllm_version(python) if python else None
    is_for_cpu = version is not None and version.endswith("+cpu")
    if gpus and python and is_for_cpu:
        return warning(
            "gpu",
            f"{', '.join(gpus)}, but vLLM is the build for CPUs",
            f"delete {python.parent.parent} and call `proctor vllm install`: it takes the build for the GPU",
        )
    if gpus:
        return fine("gpu", ", ".join(gpus))
    if version and not is_for_cpu:
        return warning(
            "gpu", "no NVIDIA GPU answers, but vLLM is the build for GPUs", "see what `nvidia-smi` says"
        )
    return fine("gpu", "none answers: vLLM runs on the CPU, which is enough for small models")


def examine_starter_model(environ: Mapping[str, str]) -> Finding:
    folder = starter_model_dir(environ)
    if is_current(folder):
        return fine("starter model", str(folder))
    state = "was made by an older version" if folder.is_dir() else "is not there"
    return warning(
        "starter model", f"{folder} {state}", "`proctor up --model vllm/starter` trains it once, in minutes"
    )


async def examine_providers(environ: Mapping[str, str]) -> list[Finding]:
    configured = [provider for provider in REMOTE_PROVIDERS.values() if provider.is_configured(environ)]
    others = [provider for provider in REMOTE_PROVIDERS.values() if provider not in configured]
    found = await asyncio.gather(*(_examine(provider, environ) for provider in configured))
    if others:
        ways = ", ".join(f"{provider.name} ({_way_of(provider)})" for provider in others)
        found.append(fine("other providers", f"not set up; set a variable to add one: {ways}"))
    return found


async def _examine(provider: RemoteProvider, environ: Mapping[str, str]) -> Finding:
    name, address = f"provider {provider.name}", provider.address(environ)
    keys = [key for key in provider.api_key_envs if environ.get(key) or environ.get(f"{key}_FILE")]
    key = f"key in {keys[0]}" if keys else "no key"
    if not address:
        return warning(name, f"{key}, but no address", f"set {provider.url_variable} to its server")
    problem = await _why_silent(address)
    if problem:
        is_far = address == provider.base_url and address.startswith("https://")
        cure = "see that this machine reaches it" if is_far else "start it"
        message = f"{address} does not answer: {problem}; {key}"
        return warning(name, message, f"{cure}, or correct {provider.url_variable}")
    if provider.lacks_key(environ):
        return warning(name, f"{address} answers; no key", provider.key_advice)
    return fine(name, f"{address} answers; {key}")


async def _why_silent(address: str) -> str:
    """Connects as a client would, encryption included; empty when that works."""
    try:
        parts = urlsplit(address)
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port, ssl=is_secure or None)
        writer.close()
    except TimeoutError:
        return f"nothing within {TIMEOUT_SECONDS:.0f} s"
    except ConnectionRefusedError:
        return "no program listens there"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""


def _way_of(provider: RemoteProvider) -> str:
    return provider.api_key_envs[0] if provider.base_url.startswith("https://") else provider.url_variable
