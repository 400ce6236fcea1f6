"""A stored version of a user's suite."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredSuite:
    """`digest` identifies the document with its files; versions count from 1."""

    suite: str
    version: int
    digest: str

    @property
    def full_name(self) -> str:
        return f"{self.suite}@{self.version}"


@dataclass(frozen=True, slots=True)
class AddedSuite:
    """`is_known`: the same content was already stored as this version."""

    stored: StoredSuite
    is_known: bool = False


def split_name(name: str) -> tuple[str, int | None]:
    """Splits `name@version`. The version is None (latest) without one, and -1 if it is invalid."""
    suite, mark, version = name.partition("@")
    if not mark:
        return suite, None
    return suite, int(version) if version.isdecimal() and len(version) < 9 else -1
