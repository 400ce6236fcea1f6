"""Permissions of methods: one table, by which the gateway admits callers and services check them again."""

from collections.abc import Mapping
from enum import StrEnum

from proctor.values.names.user import Caller
from services.common.errors import OperatorsOnly, ViewersOnlyRead


class Permission(StrEnum):
    """The callers that an operation allows, and the request limit that it counts against."""

    # Any caller, without a key. It is not counted; an unknown key counts under the address of the caller.
    PUBLIC = "public"
    # Every user; counted as a read.
    READ = "read"
    # Every user but viewers; counted as a change, as are all below.
    CHANGE = "change"
    # The owner of what is changed, and maintainers. The service that stores it checks the owner.
    OWNER = "owner"
    OPERATOR = "operator"
    # Services only: never forwarded.
    INTERNAL = "internal"


_READ, _CHANGE, _OWNER = Permission.READ, Permission.CHANGE, Permission.OWNER

METHODS: Mapping[str, Permission] = {
    # Runs.
    "SubmitRun": _CHANGE,
    "ImportRun": _CHANGE,
    "EstimateRun": _READ,
    "GetRun": _READ,
    "ListRuns": _READ,
    "WatchRun": _READ,
    "CancelRun": _OWNER,
    "RetryRun": _OWNER,
    "PauseRun": _OWNER,
    "ResumeRun": _OWNER,
    "DeleteRun": _OWNER,
    "LabelRun": _OWNER,
    "ArchiveRun": _OWNER,
    "RestoreRun": _OWNER,
    # Schedules.
    "AddSchedule": _CHANGE,
    "ListSchedules": _READ,
    "GetSchedule": _READ,
    "PauseSchedule": _OWNER,
    "ResumeSchedule": _OWNER,
    "DeleteSchedule": _OWNER,
    # Notices. Each user has targets of its own.
    "AddNoticeTarget": _CHANGE,
    "ListNoticeTargets": _READ,
    "DeleteNoticeTarget": _OWNER,
    "TestNoticeTarget": _OWNER,
    "ListNotices": _READ,
    # Models, workers, the queue.
    "ListModels": _READ,
    "ListModelNames": _READ,
    "ListWorkers": _READ,
    "GetQueue": _READ,
    "GetLimits": _READ,
    "SetLimits": Permission.OPERATOR,
    "ListChanges": _READ,
    "ListAuditRecords": Permission.OPERATOR,
    # Projects. Who gives roles is an operator, or a maintainer of the project.
    "CreateProject": Permission.OPERATOR,
    "ListProjects": _READ,
    "GetProject": _READ,
    "UpdateProject": _OWNER,
    "SetProjectMember": _OWNER,
    "RemoveProjectMember": _OWNER,
    # Keys.
    "CreateKey": Permission.OPERATOR,
    "ListKeys": Permission.OPERATOR,
    "RotateKey": Permission.OPERATOR,
    "RevokeKey": Permission.OPERATOR,
    "GetStorage": _READ,
    # Suites.
    "ListSuites": _READ,
    "ShowSample": _READ,
    "GetSuiteDocument": _READ,
    # The editor of suites asks after each pause of typing; nothing is stored.
    "CheckSuite": _READ,
    "AddSuite": _CHANGE,
    "DeleteSuite": _OWNER,
    # Rollouts. Their runs and suites have the permissions of any other.
    "UploadTasks": _CHANGE,
    "SubmitRollouts": _CHANGE,
    "ListArtifacts": _READ,
    "ReadArtifact": _READ,
    "GetRolloutsOrder": _READ,
    "ListRolloutsOrders": _READ,
    # Data sets, files and batches.
    "UploadDataset": _CHANGE,
    "GetDataset": _READ,
    "ListDatasets": _READ,
    "PreviewDataset": _READ,
    # It shows the caller's own bytes, and stores nothing.
    "PreviewUpload": _READ,
    "SaveMapping": _OWNER,
    "GetMapping": _READ,
    "ListMappings": _READ,
    "DeleteMapping": _OWNER,
    "DeleteDataset": _OWNER,
    "UploadFile": _CHANGE,
    "GetFile": _READ,
    "ListFiles": _READ,
    "ReadFile": _READ,
    "DeleteFile": _OWNER,
    "CreateBatch": _CHANGE,
    "GetBatch": _READ,
    "ListBatches": _READ,
    "CancelBatch": _OWNER,
    # Results. Golden marks are work that users share, and each has the name of who made it.
    "GetSummary": _READ,
    "RecloseRun": Permission.OPERATOR,
    "RecordContamination": _CHANGE,
    "ListOutcomes": _READ,
    "CompareRuns": _READ,
    "ListFlips": _READ,
    "GateRun": _READ,
    "PlanSize": _READ,
    "GetLeaderboard": _READ,
    "ListHistory": _READ,
    "ListClosedRuns": _READ,
    "ExportRun": _READ,
    "ExportGoldenAnswers": _READ,
    "RescoreTask": _CHANGE,
    "ListSideBySide": _READ,
    "MarkAnswers": _CHANGE,
    "ListMarkChanges": _READ,
    "CalibrateJudge": _READ,
    "FindUnannotated": _READ,
    "AnnotateAnswer": _CHANGE,
    "ListAnnotations": _READ,
    "GetAgreement": _READ,
    "GetPanel": _READ,
    "GetRatings": _READ,
    "GetNoise": _READ,
}

# The gateway records them in the audit before they go on: reads that take much away, and changes of results,
# which has no table of records. The scheduler records its own changes, in the transaction that makes them.
RECORDED = frozenset(
    {
        "ExportRun",
        "ExportGoldenAnswers",
        "ReadFile",
        "ReadArtifact",
        "RescoreTask",
        "MarkAnswers",
        "AnnotateAnswer",
        "RecloseRun",
        "RecordContamination",
    }
)


def method_permission(name: str) -> Permission:
    """The permission of a gRPC method, by its name without its service."""
    return METHODS.get(name, Permission.INTERNAL)


def check_role(permission: Permission, caller: Caller) -> None:
    """Raises `OperatorsOnly` or `ViewersOnlyRead`. Owners are checked where they are stored."""
    if permission is Permission.OPERATOR and not caller.is_operator:
        raise OperatorsOnly(user=caller.name)
    if permission in (Permission.CHANGE, Permission.OWNER) and caller.is_viewer:
        raise ViewersOnlyRead(user=caller.name, role=caller.role.value)
