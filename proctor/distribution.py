"""The distribution that is installed, the names of its commands, and who else has a package `proctor`."""

from importlib.metadata import packages_distributions

NAME = "proctor-eval"
# The second is for machines where another package has the first (decision 0056).
COMMANDS = ("proctor", "proctor-eval")
PACKAGE = "proctor"


def others_with_our_package() -> list[str]:
    """Reads the records of all that is installed: some tenths of a second."""
    return sorted({*packages_distributions().get(PACKAGE, ())} - {NAME})
