"""How a service starts a module of its own as a process."""

import os
import sys
from collections.abc import Mapping, Sequence

# No secret of a service is among them.
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "LANG", "TMPDIR")


def module_command(module: str, *arguments: str) -> Sequence[str]:
    """Isolated: neither the working directory nor the environment says where modules come from."""
    return (sys.executable, "-I", "-m", module, *arguments)


def inherited_environment() -> Mapping[str, str]:
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}
