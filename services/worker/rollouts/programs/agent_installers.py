"""Installers of packages in the sandbox of an agent, which has no network."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.sandboxes.sandbox import DEFAULT_PATH, Command

# `install.py` knows these folders.
PLACE, WHEELS, INTO = "/opt/installers", "/opt/wheels", "/opt/installed"
_LIST = f"ls {INTO}/site 2>/dev/null | sed -n 's/[.]dist-info$//p'"
# Names of what an agent installed are its own, so they are bounded.
_OUTPUT_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class AgentInstallers:
    """`folder` and `wheels` are of this machine. Without a folder a sandbox has the installers of its image.

    `there` are names of wheels with their versions, `NAME-VERSION`.
    """

    folder: str = ""
    wheels: str = ""
    there: frozenset[str] = frozenset()

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        pairs = ((self.folder, PLACE), (self.wheels, WHEELS))
        return tuple(pair for pair in pairs if pair[0]) if self.folder else ()

    @property
    def writable(self) -> tuple[str, ...]:
        return (INTO,) if self.folder else ()

    def variables(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """Variables by which the agent's commands find installers and what they installed."""
        if not self.folder:
            return own
        modules = [f"{INTO}/site", *filter(None, [own.get("PYTHONPATH")]), f"{PLACE}/lib"]
        path = f"{PLACE}/bin:{own.get('PATH', DEFAULT_PATH)}:{INTO}/bin"
        base = f"{PLACE}/user"
        return {**own, "PATH": path, "PYTHONPATH": ":".join(modules), "PYTHONUSERBASE": base}

    def list_installed(self) -> Command:
        return Command(("/bin/sh", "-c", _LIST), env={"PATH": DEFAULT_PATH}, output_bytes=_OUTPUT_BYTES)

    def installed(self, listed: str) -> tuple[str, ...]:
        """Requirements of what the agent installed from the wheels: others are of no wheel, and its own."""
        found = sorted(self.there & set(listed.split()))
        return tuple("==".join(name.split("-", 1)) for name in found)
