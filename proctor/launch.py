"""The commands `proctor` and `proctor-eval`, outside of `proctor.cli`, which another package may hide."""

import sys

from proctor.distribution import others_with_our_package


def main() -> None:
    try:
        from proctor.cli.__main__ import main as run_command_line  # noqa: PLC0415  # may be hidden
    except ImportError:
        others = ", ".join(others_with_our_package())
        if not others:
            raise
        sys.exit(
            f"The import package proctor of {others} hides Proctor's in {sys.prefix}: install one of them in "
            "another environment, as `pipx install` does."
        )
    run_command_line()
