"""A version of a suite that a user brought, as it is kept."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredSuite:
    """`digest` names the document with its files; versions of a suite are counted from 1."""

    suite: str
    version: int
    digest: str

    @property
    def full_name(self) -> str:
        return f"{self.suite}@{self.version}"


@dataclass(frozen=True, slots=True)
class AddedSuite:
    """`is_known`: the same content was there before, under the version that it had."""

    stored: StoredSuite
    is_known: bool = False


def split_name(name: str) -> tuple[str, int | None]:
    """`name@version` becomes both; None is the latest, and -1 what is no version at all."""
    suite, mark, version = name.partition("@")
    if not mark:
        return suite, None
    return suite, int(version) if version.isdecimal() and len(version) < 9 else -1
