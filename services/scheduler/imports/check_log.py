"""Reads an uploaded log, in a process, and stores its samples in parts."""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, cast

from services.scheduler.imports.logged_run import CheckedLog, LogCheck, LoggedRun, LoggedSample, part_key
from services.scheduler.imports.logs.document import LogProblem
from services.scheduler.imports.logs.find_reader import find_reader
from services.scheduler.imports.logs.log_files import LogFiles
from services.scheduler.imports.logs.sample_writer import SampleWriter
from services.scheduler.uploads.checking.compression import decompressed_chunks
from services.scheduler.uploads.errors import BrokenFile
from services.scheduler.uploads.ports import Objects

_SPOOLED_BYTES = 8 * 1024 * 1024

# Samples as bytes.
Encode = Callable[[Sequence[LoggedSample]], bytes]


@dataclass(frozen=True, slots=True)
class CheckLog:
    """Runs in a process, which bounds its memory and time."""

    objects: Objects
    encode: Encode

    def check(self, check: LogCheck, chunks: Iterable[bytes]) -> CheckedLog:
        """What is wrong with the log is a result, with its sentence."""
        sent = _Sent(chunks, check.limits.sent_bytes)
        most = min(check.limits.sent_bytes, check.limits.read_bytes)
        with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as spooled:
            try:
                _spool(decompressed_chunks(sent), spooled, most)
                run = self._read(check, cast("BinaryIO", spooled))
            except (LogProblem, BrokenFile) as problem:
                return CheckedLog(problem=str(problem))
            except (RecursionError, UnicodeError) as error:
                return CheckedLog(problem=f"It cannot be read ({type(error).__name__}).")
        return CheckedLog(run, digest=sent.digest.hexdigest(), size_bytes=sent.size)

    def _read(self, check: LogCheck, file: BinaryIO) -> LoggedRun:
        parts: dict[int, int] = {}

        def store(task_index: int, samples: Sequence[LoggedSample]) -> None:
            part = parts[task_index] = parts.get(task_index, 0) + 1
            self.objects.put(part_key(check.prefix, task_index, part), [self.encode(samples)])

        writer = SampleWriter(store, check.limits)
        files = LogFiles(file, _uncompressed(check.options.name), check.limits.read_bytes)
        run = find_reader(files, check.options, writer).read()
        return _with_counts(run, writer.answer_counts)


class _Sent:
    """Passes chunks on, and counts and digests them. Raises `LogProblem`."""

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self.digest = hashlib.sha256()
        self.size = 0
        self._chunks = chunks
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            if self.size > self._limit:
                raise LogProblem(f"It has more than {self._limit:,} bytes.")
            self.digest.update(chunk)
            yield chunk


def _spool(chunks: Iterable[bytes], file: IO[bytes], limit: int) -> None:
    for chunk in chunks:
        file.write(chunk)
        if file.tell() > limit:
            raise LogProblem(f"It has more than {limit:,} bytes decompressed.")
    file.seek(0)


def _uncompressed(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".zst")


def _with_counts(run: LoggedRun, counts: Sequence[int]) -> LoggedRun:
    """How many answers there are to each sample: one of each rollout."""
    if not counts:
        raise LogProblem("It has no samples.")
    most = max(counts)
    if most == 0:
        raise LogProblem("It has no answers.")
    return replace(run, rollouts=most, answer_counts=() if min(counts) == most else tuple(counts))
