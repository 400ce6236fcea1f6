"""Data sets that the code of a task loads by itself: they are opened here, and sent into its sandbox."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.scheduler.suites.code.errors import code_failed
from services.scheduler.suites.rows.errors import UnreadableRow
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.rows.row_source import (
    Provenance,
    RowsReference,
    SourceRow,
    is_hub_id,
)

# Of a task. Each takes one more start of its code.
MAX_SETS = 8
_SPLIT = re.compile(r"\w[\w.-]*")
_KEYS = frozenset({"path", "name", "split", "files", "revision"})


@dataclass(slots=True)
class LoadedSets:
    """Those that the code asked for so far, by its words."""

    task: str
    suite: str
    rows: RowSource
    _found: dict[str, RowsReference] = field(default_factory=dict)
    _provenances: list[Provenance] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return list(self._found)

    @property
    def provenance(self) -> Provenance:
        """Of all of them; the file of the task is where rows come from that no set has."""
        if len(self._provenances) == 1:
            return self._provenances[0]
        found = self._provenances
        return Provenance(
            ", ".join(dict.fromkeys(each.source for each in found)) or self.suite,
            ", ".join(each.location for each in found),
            " ".join(each.revision for each in found),
            is_stand_in=any(each.is_stand_in for each in found),
        )

    def add(self, asked: object) -> None:
        """Raises `TaskCodeFailed`, and what its source raises where it has no such rows."""
        key, reference = json.dumps(asked, sort_keys=True), self._reference(asked)
        if key in self._found or len(self._found) == MAX_SETS:
            raise code_failed(self.task, f"loads more than {MAX_SETS} data sets, or one of them without end")
        self._provenances.append(self.rows.open(reference).provenance)
        self._found[key] = reference

    def lines(self) -> Iterator[bytes]:
        for reference in self._found.values():
            yield from row_lines(self.rows.open(reference).rows)
            yield b"null\n"

    def _reference(self, asked: object) -> RowsReference:
        if not (isinstance(asked, dict) and asked.keys() == _KEYS and _has_texts(asked)):
            raise code_failed(self.task, "wrote a line that is no row")
        if not is_hub_id(asked["path"]):
            raise code_failed(self.task, f"loads {asked['path']!r:.80}, which is no data set of the hub")
        if not _SPLIT.fullmatch(asked["split"]):
            raise code_failed(self.task, f"loads {asked['split']!r:.80}; only whole splits can be had")
        return RowsReference(
            self.suite,
            hub_id=asked["path"],
            config=asked["name"],
            split=asked["split"],
            revision=asked["revision"] or None,
            data_files=tuple(asked["files"]),
        )


def _has_texts(asked: Mapping[str, Any]) -> bool:
    files = asked["files"]
    texts = [asked[key] for key in _KEYS - {"files"}] + (files if isinstance(files, list) else [None])
    return all(isinstance(text, str) for text in texts)


def row_lines(rows: Iterable[SourceRow]) -> Iterator[bytes]:
    """Raises `UnreadableRow` at one that has no form in JSON."""
    for number, row in enumerate(rows, start=1):
        try:
            yield json.dumps(row).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise UnreadableRow(number, f"the code of a task cannot get it as JSON ({error})") from error
