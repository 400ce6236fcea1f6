"""Imports that a service leaves out: a tenth of its start to a third."""

import gc
import importlib
import sys


def start_lean(*, has_nats: bool = True) -> None:
    """Is called before anything else is imported, and only by a process that is a service."""
    # Nothing that an import makes is garbage. `start_process` turns collections on again.
    gc.disable()
    # structlog draws tracebacks with it where it finds it; a service writes JSON.
    _hide("rich")
    if has_nats:
        # The client imports it for websockets, which no service uses.
        _hide("aiohttp")
        importlib.import_module("nats.aio.transport")
        # Sandboxes and notices use it.
        del sys.modules["aiohttp"]


def _hide(package: str) -> None:
    """Makes it one that cannot be imported."""
    sys.modules[package] = None  # type: ignore[assignment]  # the interpreter's own sign for it
