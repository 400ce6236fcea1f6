"""The name of a version of a suite, "suite@version", and names that no benchmark of users may have."""

import re

_MAX_DIGITS = 8
_OF_UPLOAD = re.compile(r"(ds_|file-)[0-9a-f]{32}")
# Readers of UUIDs take them in any case, in braces, and with dashes anywhere.
_OF_RUN = re.compile(r"[0-9a-f_]{32}", re.IGNORECASE)


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


def is_id(name: str) -> bool:
    """Whether it has the form of the id of a run, a data set or a file.

    These are names of benchmarks too: runs over a suite of that name would be taken for judgings of the run.
    """
    digits = name.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return bool(_OF_UPLOAD.fullmatch(name) or _OF_RUN.fullmatch(digits))
