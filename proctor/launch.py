"""The commands `proctor` and `proctor-eval`, outside of `proctor.cli`, which another package may hide."""

import sys


def main() -> None:
    try:
        from proctor.cli.__main__ import main as run_command_line  # noqa: PLC0415  # may be hidden
    except ImportError:
        _explain_hidden_package()
        raise
    except KeyboardInterrupt:
        # An interrupt is no failure of the program: its traceback would say nothing.
        sys.exit(130)
    run_command_line()


def _explain_hidden_package() -> None:
    """Exits where another distribution has a package of our name."""
    from proctor.distribution import others_with_our_package  # noqa: PLC0415  # slow, and for this case only

    others = ", ".join(others_with_our_package())
    if others:
        sys.exit(
            f"The import package proctor of {others} hides Proctor's in {sys.prefix}: install one of them in "
            "another environment, as `pipx install` does."
        )
