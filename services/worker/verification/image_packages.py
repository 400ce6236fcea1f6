"""The packages of Python that the image of a task has, in a sandbox that has no images."""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from services.common.sandboxes.sandbox import DEFAULT_PATH

PLACE = "/opt/packages"


@dataclass(frozen=True, slots=True)
class ImagePackages:
    """`folder` of this machine has them, modules in `lib` and commands in `bin`; empty where there is none.

    `notes` name those of another version, and those that are `missing`, by their normalized names.
    """

    folder: str = ""
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def lacks(self, name: str) -> bool:
        return canonicalize_name(name) in self.missing

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        return ((self.folder, PLACE),) if self.folder else ()

    def variables(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """Variables by which Python and shells find them, after what the task names itself."""
        if not self.folder:
            return own
        modules = [*filter(None, [own.get("PYTHONPATH")]), f"{PLACE}/lib"]
        path = f"{own.get('PATH', DEFAULT_PATH)}:{PLACE}/bin"
        # For programs that set PYTHONPATH themselves.
        base = f"{PLACE}/user"
        return {"PYTHONUSERBASE": base, **own, "PYTHONPATH": ":".join(modules), "PATH": path}


def named_package(requirement: str) -> str:
    """The normalized name of a package, as pip reads it; all of the text where pip cannot read it."""
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return requirement
