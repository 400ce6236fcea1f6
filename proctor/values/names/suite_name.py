"""The name of a version of a suite, "suite@version"."""

_MAX_DIGITS = 8


def versioned_name(suite: str, version: int) -> str:
    return f"{suite}@{version}"


def base_name(name: str) -> str:
    """The name without its version."""
    return name.partition("@")[0]


def split_name(name: str) -> tuple[str, int | None]:
    """Splits `name@version`. The version is None (latest) without one, and -1 if it is invalid."""
    suite, mark, version = name.partition("@")
    if not mark:
        return suite, None
    return suite, int(version) if version.isdecimal() and len(version) <= _MAX_DIGITS else -1
