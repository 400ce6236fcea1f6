"""Reads rows of a data set back, from any row on: only what they lie in is fetched."""

from collections.abc import Iterator
from dataclasses import dataclass

from services.scheduler.datasets.dataset import DatasetContent
from services.scheduler.datasets.dataset_row import DatasetRow, row_from_line
from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.datasets.row_frames import index_from_json, index_key, lines_of_frame, part_key


@dataclass(frozen=True)
class LoadRows:
    objects: ObjectStore

    def rows_from(self, content: DatasetContent, first_row: int) -> Iterator[DatasetRow]:
        """In order, to the last one. Blocks while it fetches, so it is read in a thread."""
        return (row_from_line(row, line) for row, line in self.lines_from(content, first_row))

    def lines_from(self, content: DatasetContent, first_row: int) -> Iterator[tuple[int, bytes]]:
        """Each row's number with the line that it is kept as; blocks as `rows_from` does."""
        if first_row >= content.facts.row_count:
            return
        index = index_from_json(self.objects.get(index_key(content.prefix)))
        for frame in index.frames[index.position(first_row) :]:
            key = part_key(content.prefix, frame.part)
            packed = self.objects.get_range(key, frame.start, frame.length)
            for row, line in enumerate(lines_of_frame(packed), frame.first_row):
                if row >= first_row:
                    yield row, line
