"""Reads a log in the test's own process, as the process of an import reads it."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.common.processes.plain_values import from_bytes, to_bytes
from services.scheduler.imports.check_log import CheckLog
from services.scheduler.imports.logged_run import (
    CheckedLog,
    LogCheck,
    LoggedRun,
    LoggedSample,
    ReadLimits,
    ReadOptions,
)

LIMITS = ReadLimits(sent_bytes=10_000_000, read_bytes=50_000_000, samples=1000)


@dataclass
class Kept:
    """The parts that a check stores."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        self.objects[key] = b"".join(chunks)

    @property
    def samples(self) -> list[LoggedSample]:
        parts = (from_bytes(self.objects[key], list[LoggedSample]) for key in sorted(self.objects))
        return [sample for part in parts for sample in part]


def packed(files: Mapping[str, str | bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def checked(
    content: bytes, name: str = "log.zip", *, limits: ReadLimits = LIMITS, model: str = "", task: str = ""
) -> tuple[CheckedLog, list[LoggedSample]]:
    kept = Kept()
    options = ReadOptions(name, model=model, task=task)
    check = LogCheck(prefix="parts", options=options, limits=limits)
    found = CheckLog(objects=kept, encode=to_bytes).check(check, [content])
    return found, kept.samples


def read(
    content: bytes | Mapping[str, str | bytes], name: str = "log.zip", model: str = ""
) -> tuple[LoggedRun, list[LoggedSample]]:
    log, samples = checked(content if isinstance(content, bytes) else packed(content), name, model=model)
    assert log.run is not None, log.problem
    return log.run, samples


def problem_of(content: bytes | Mapping[str, str | bytes], name: str = "log.zip", model: str = "") -> str:
    log, _ = checked(content if isinstance(content, bytes) else packed(content), name, model=model)
    assert log.run is None
    return log.problem
