"""Fake of the scheduler: suites of users. A line that begins with `broken` is a fault."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

import hashlib
from dataclasses import dataclass, field
from typing import Any

from proctor.v1 import sample_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.v1 import suite_service_pb2_grpc as suite_grpc
from services.common.errors import ErrorKind
from tests.fakes.refusals import refused

ROWS = 5
BROKEN = "broken"


@dataclass
class FakeSuites(suite_grpc.SuiteServiceServicer):
    """Every document is the suite `mine`; versions that a run used are `in_use`."""

    kept: list[str] = field(default_factory=list)
    in_use: set[int] = field(default_factory=set)
    added: list[suite_pb2.AddSuiteRequest] = field(default_factory=list)
    checked: list[suite_pb2.SuiteDocument] = field(default_factory=list)
    shown: list[suite_pb2.ShowSampleRequest] = field(default_factory=list)
    sample: sample_pb2.Sample = field(default_factory=sample_pb2.Sample)

    async def CheckSuite(
        self, request: suite_pb2.CheckSuiteRequest, context: Any
    ) -> suite_pb2.CheckSuiteResponse:
        self.checked.append(request.document)
        faults = _faults(request.document)
        suite = None if faults else _suite(request.document, 0)
        return suite_pb2.CheckSuiteResponse(faults=faults, suite=suite)

    async def AddSuite(self, request: suite_pb2.AddSuiteRequest, context: Any) -> suite_pb2.AddSuiteResponse:
        faults = _faults(request.document)
        if faults:
            raise refused(ErrorKind.CONFLICT, "INVALID_SUITE_FILE", faults[0].problem)
        self.added.append(request)
        digest = _digest(request.document)
        is_known = digest in self.kept
        if not is_known:
            self.kept.append(digest)
        suite = _suite(request.document, self.kept.index(digest) + 1)
        return suite_pb2.AddSuiteResponse(suite=suite, is_known=is_known)

    async def DeleteSuite(
        self, request: suite_pb2.DeleteSuiteRequest, context: Any
    ) -> suite_pb2.DeleteSuiteResponse:
        facts = {"suite": request.suite, "version": str(request.version)}
        if request.suite != "mine" or not 0 < request.version <= len(self.kept):
            raise refused(ErrorKind.INVALID, "UNKNOWN_SUITE", f"There is no suite {request.suite}.", **facts)
        if request.version in self.in_use:
            raise refused(ErrorKind.CONFLICT, "SUITE_IN_USE", "A run used this version.", **facts)
        self.kept[request.version - 1] = ""
        return suite_pb2.DeleteSuiteResponse()

    async def GetSuiteDocument(
        self, request: suite_pb2.GetSuiteDocumentRequest, context: Any
    ) -> suite_pb2.GetSuiteDocumentResponse:
        name, _, version = request.suite.partition("@")
        number = int(version or len(self.kept))
        documents = [
            one.document for one in self.added if _digest(one.document) in self.kept[number - 1 : number]
        ]
        if name != "mine" or not documents:
            raise refused(ErrorKind.INVALID, "UNKNOWN_SUITE", f"There is no suite {name}.", suite=name)
        return suite_pb2.GetSuiteDocumentResponse(document=documents[-1], version=number)

    async def ShowSample(
        self, request: suite_pb2.ShowSampleRequest, context: Any
    ) -> suite_pb2.ShowSampleResponse:
        self.shown.append(request)
        faults = _faults(request.document)
        if faults:
            raise refused(ErrorKind.CONFLICT, "INVALID_SUITE_FILE", faults[0].problem)
        if request.task != "sentiment" and not (request.HasField("document") and not request.task):
            raise refused(ErrorKind.INVALID, "UNKNOWN_TASK", f"There is no task {request.task}.")
        if request.doc_id >= ROWS:
            raise refused(ErrorKind.INVALID, "ROW_NOT_FOUND", f"The task has {ROWS} rows.", rows=str(ROWS))
        scoring = sample_pb2.TaskScoring(
            output_type=sample_pb2.OUTPUT_TYPE_MULTIPLE_CHOICE,
            metrics=[sample_pb2.MetricUse(name="f1", options_json='{"average": "macro"}')],
        )
        return suite_pb2.ShowSampleResponse(
            sample=self.sample,
            scoring=scoring,
            stop=["\n"],
            row_source="own rows",
            row_source_revision="ab12",
            repeats=4,
        )


def _faults(document: suite_pb2.SuiteDocument) -> list[suite_pb2.SuiteFault]:
    lines = document.text.splitlines()
    return [
        suite_pb2.SuiteFault(line=number, field="tasks.0", problem=f"{line.strip()} is not a key")
        for number, line in enumerate(lines, 1)
        if line.strip().startswith(BROKEN)
    ]


def _suite(document: suite_pb2.SuiteDocument, version: int) -> scheduler_pb2.SuiteInfo:
    task = scheduler_pb2.TaskInfo(
        task="sentiment",
        version="1",
        metrics=["f1"],
        row_source=", ".join(sorted(document.files)),
        output_type=sample_pb2.OUTPUT_TYPE_MULTIPLE_CHOICE,
    )
    return scheduler_pb2.SuiteInfo(suite="mine", version=version, digest=_digest(document), tasks=[task])


def _digest(document: suite_pb2.SuiteDocument) -> str:
    return hashlib.sha256(document.SerializeToString(deterministic=True)).hexdigest()
