"""Which release of Proctor this is."""

from importlib.metadata import PackageNotFoundError, version


def release() -> str:
    try:
        return version("proctor")
    except PackageNotFoundError:
        return "source tree"
