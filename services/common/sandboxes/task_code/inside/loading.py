"""Data sets that the code of a task loads: the caller sends those that it asked for at an earlier start."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from services.common.sandboxes.task_code.inside.dataset import Dataset, Row

_NAME_IT = "load_dataset: name the split; code of a task cannot list those of a data set"


class SetIsMissing(BaseException):
    """The code needs a data set that was not sent: `asked` names it. No error of the code's own."""

    def __init__(self, asked: Row) -> None:
        super().__init__(asked)
        self.asked = asked


def read_rows(lines: BinaryIO) -> list[Row]:
    """Rows as lines of JSON, which a null ends."""
    rows: list[Row] = []
    while (row := json.loads(lines.readline())) is not None:
        rows.append(row)
    return rows


class SentSets:
    """The rows that were sent, by what the code asks for, as JSON."""

    def __init__(self) -> None:
        self._sets: dict[str, list[Row]] = {}

    def read(self, keys: Sequence[str], lines: BinaryIO) -> None:
        for key in keys:
            self._sets[key] = read_rows(lines)

    def load_dataset(
        self,
        path: str,
        name: str | None = None,
        *,
        data_files: Any = None,
        split: Any = None,
        revision: Any = None,
        **_: object,
    ) -> Any:
        """Options that say how rows are loaded have no effect. Without a split, splits are loaded by name."""

        def load(wanted: object) -> Dataset:
            files = data_files.get(wanted) if isinstance(data_files, Mapping) else data_files
            named = [files] if isinstance(files, str) else list(files or ())
            return self._loaded(path=path, name=name, split=wanted, files=named, revision=revision)

        return Splits(load) if split is None else load(split)

    def _loaded(self, **asked: object) -> Dataset:
        texts = {key: value if isinstance(value, list) else str(value or "") for key, value in asked.items()}
        rows = self._sets.get(json.dumps(texts, sort_keys=True))
        if rows is None:
            raise SetIsMissing(texts)
        return Dataset(rows)


class Splits(Mapping[str, Dataset]):
    """The splits of a data set. Which there are is unknown: one is loaded where it is named."""

    def __init__(self, load: Any) -> None:
        self._load = load

    def __getitem__(self, split: str) -> Dataset:
        loaded: Dataset = self._load(split)
        return loaded

    def __contains__(self, split: object) -> bool:
        self._load(split)
        return True

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError(_NAME_IT)

    def __len__(self) -> int:
        raise NotImplementedError(_NAME_IT)
