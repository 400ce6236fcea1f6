"""What the gateway refuses by itself; all else is refused by the service that a request is for."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.errors import DomainError, ErrorKind


class GatewayError(DomainError):
    """The gateway refused the request."""

    kind = ErrorKind.INVALID
    reason = "INVALID_PARAMETER"


class InvalidUserName(GatewayError):
    """The user name in X-Proctor-User must be 1 to 128 printable characters of UTF-8, and not *."""


class RunNotFound(GatewayError):
    """Run {run_id} not found."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class DatasetRunNotFound(GatewayError):
    """Benchmark {benchmark_id} not found: no run over a data set has this id."""

    kind = ErrorKind.NOT_FOUND
    reason = "RUN_NOT_FOUND"


class DatasetRunNotPlanned(GatewayError):
    """Benchmark {benchmark_id} has not begun, so there are no answers to look at yet."""

    kind = ErrorKind.CONFLICT
    reason = "RUN_NOT_FINISHED"


class EmptyId(GatewayError):
    """{parameter} has an empty id in it: write the ids with one comma between each two."""


class FileIsWhole(GatewayError):
    """A file has all answers of the run: leave out {parameters}, or ask for pages (format=json)."""


class NoSuchSuite(GatewayError):
    """There is no suite {suite}. Supported: {supported}."""

    kind = ErrorKind.NOT_FOUND
    reason = "UNKNOWN_SUITE"


class NoSuchVersion(GatewayError):
    """No user's suite {suite} has a version {version}."""

    kind = ErrorKind.NOT_FOUND
    reason = "UNKNOWN_SUITE"


class SuiteVersionNamed(GatewayError):
    """{given} names a version; runs are looked for over all versions of a suite: name it {suite}."""


class NoSuchModel(GatewayError):
    """There is no model {model} here; GET /v1/models lists those that there are."""

    kind = ErrorKind.NOT_FOUND
    reason = "UNKNOWN_MODEL"


class NotSuiteText(GatewayError):
    """The body is no UTF-8 text; send the YAML file as it is."""


@dataclass(frozen=True, slots=True)
class SuiteFault:
    """Something wrong with a suite: `file` is empty for the document itself, `line` 0 where unknown."""

    file: str
    line: int
    key: str
    problem: str

    def sentence(self) -> str:
        place = " ".join(
            part for part in (self.file, f"line {self.line}" if self.line else "", self.key) if part
        )
        return f"{place}: {self.problem}" if place else self.problem


class SuiteRefused(GatewayError):
    """The suite cannot be run. {sentences}"""

    reason = "INVALID_SUITE_FILE"

    def __init__(self, faults: Sequence[SuiteFault]) -> None:
        super().__init__(sentences=" · ".join(fault.sentence() for fault in faults))
        self.faults = tuple(faults)


class MalformedForm(GatewayError):
    """The form cannot be read: {problem}. Send the file as the field `file` of multipart/form-data."""


class NoUploadName(GatewayError):
    """A data set has a name of 1 to 255 characters: the name of its file, or ?name=."""


class BodyCutOff(GatewayError):
    """The body broke off before its end; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class DatasetFault:
    """Something wrong with an upload: `line` is 0 for the whole file, `field` empty for the whole line."""

    line: int
    field: str
    problem: str

    def sentence(self) -> str:
        place = " ".join(part for part in (f"line {self.line}" if self.line else "", self.field) if part)
        return f"{place}: {self.problem}" if place else self.problem


class DatasetRefused(GatewayError):
    """The file has {faults} and nothing of it is kept. {first}"""

    reason = "INVALID_DATASET"

    def __init__(self, faults: Sequence[DatasetFault], count: int) -> None:
        super().__init__(
            faults="1 fault" if count == 1 else f"{count} faults",
            first=faults[0].sentence() if faults else "",
        )
        self.faults = tuple(faults)
        self.count = count
