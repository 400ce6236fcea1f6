"""Permissions of operations: one table for HTTP and gRPC. An operation that it does not name is refused.

A REST operation has the permission of the gRPC method that does its work.
"""

from collections.abc import Mapping
from enum import StrEnum

from services.gateway.http.paths import (
    ARTIFACTS,
    ASSETS,
    BATCHES,
    BENCHMARKING,
    CHANGES,
    DATASET_RUNS,
    DATASETS,
    FILES,
    LIMITS,
    ME,
    MODELS,
    OPENAI_MODELS,
    QUEUE,
    READING_METHODS,
    ROLLOUT_TASKS,
    ROLLOUTS,
    STORAGE,
    SUITES,
    UPLOADS,
)


class Permission(StrEnum):
    """The callers that an operation allows, and the request limit that it counts against."""

    # Any caller, without a key. It is not counted; an unknown key counts under the address of the caller.
    PUBLIC = "public"
    # Every user; counted as a read.
    READ = "read"
    # Every user; counted as a change, as are all below.
    CHANGE = "change"
    # The owner of what is changed, and operators. The service that stores it checks the owner.
    OWNER = "owner"
    OPERATOR = "operator"
    # Services only: never forwarded.
    INTERNAL = "internal"


_READ, _CHANGE, _OWNER = Permission.READ, Permission.CHANGE, Permission.OWNER

METHODS: Mapping[str, Permission] = {
    # Runs.
    "SubmitRun": _CHANGE,
    "EstimateRun": _READ,
    "GetRun": _READ,
    "ListRuns": _READ,
    "WatchRun": _READ,
    "CancelRun": _OWNER,
    "RetryRun": _OWNER,
    "PauseRun": _OWNER,
    "ResumeRun": _OWNER,
    "DeleteRun": _OWNER,
    # Models, workers, the queue.
    "ListModels": _READ,
    "ListModelNames": _READ,
    "ListWorkers": _READ,
    "GetQueue": _READ,
    "GetLimits": _READ,
    "SetLimits": Permission.OPERATOR,
    "ListChanges": _READ,
    "GetStorage": _READ,
    # Suites.
    "ListSuites": _READ,
    "ShowSample": _READ,
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
    "ListOutcomes": _READ,
    "CompareRuns": _READ,
    "ListFlips": _READ,
    "GetLeaderboard": _READ,
    "ListHistory": _READ,
    "ExportRun": _READ,
    "ExportGoldenAnswers": _READ,
    "RescoreTask": _CHANGE,
    "ListSideBySide": _READ,
    "MarkAnswers": _CHANGE,
    "ListMarkChanges": _READ,
}

# By HTTP method and path.
ROUTES: Mapping[tuple[str, str], str | Permission] = {
    ("GET", "/healthz"): Permission.PUBLIC,
    ("GET", "/readyz"): Permission.PUBLIC,
    ("GET", "/"): "ListHistory",
    ("GET", "/socket"): "ListRuns",
    ("GET", f"{ASSETS}/{{digest}}/{{name:path}}"): Permission.PUBLIC,
    ("POST", "/theme"): Permission.PUBLIC,
    ("GET", "/sign-in"): Permission.PUBLIC,
    ("POST", "/sign-in"): Permission.PUBLIC,
    ("POST", "/sign-out"): Permission.PUBLIC,
    ("GET", "/runs"): "ListRuns",
    ("GET", "/runs/socket"): "ListRuns",
    ("GET", "/runs/{job_id}"): "GetRun",
    ("GET", "/runs/{job_id}/results"): "ListOutcomes",
    ("GET", "/runs/{job_id}/socket"): "WatchRun",
    ("POST", "/runs/{job_id}/pause"): "PauseRun",
    ("POST", "/runs/{job_id}/resume"): "ResumeRun",
    ("POST", "/runs/{job_id}/cancel"): "CancelRun",
    ("POST", "/runs/{job_id}/retry"): "RetryRun",
    ("POST", "/runs/{job_id}/delete"): "DeleteRun",
    ("POST", "/runs/{job_id}/reclose"): "RecloseRun",
    ("GET", "/export.json"): "ListHistory",
    ("GET", "/export.csv"): "ListHistory",
    ("GET", "/search"): "ListSuites",
    ("GET", "/runs/new"): "ListModels",
    ("POST", "/runs/new"): "SubmitRun",
    ("POST", "/runs/{job_id}/marks"): "MarkAnswers",
    ("GET", "/runs/{job_id}/rescore"): "GetSummary",
    ("POST", "/runs/{job_id}/rescore"): "RescoreTask",
    ("GET", "/rollouts"): "ListRolloutsOrders",
    ("GET", "/rollouts/{order_id}"): "GetRolloutsOrder",
    ("GET", "/runs/{job_id}/rollouts"): "ListOutcomes",
    ("GET", "/runs/{job_id}/rollouts/socket"): "WatchRun",
    ("GET", "/rollouts/socket"): "WatchRun",
    ("GET", "/rollouts/{order_id}/socket"): "WatchRun",
    ("GET", "/runs/{job_id}/rollouts/{task}/{rollout}/socket"): "WatchRun",
    ("GET", "/runs/{job_id}/rollouts/{task}/{rollout}"): "ListOutcomes",
    ("GET", "/compare"): "CompareRuns",
    ("GET", "/suites"): "ListSuites",
    ("GET", "/suites/new"): "ListSuites",
    ("POST", "/suites/check"): "CheckSuite",
    ("POST", "/suites"): "AddSuite",
    ("GET", "/suites/{suite}"): "ShowSample",
    ("POST", "/suites/{suite}/delete"): "DeleteSuite",
    ("GET", "/batches"): "ListBatches",
    ("GET", "/batches/{batch_id}"): "GetBatch",
    ("GET", "/batches/socket"): "ListBatches",
    ("GET", "/batches/{batch_id}/socket"): "GetBatch",
    ("POST", "/batches/{batch_id}/cancel"): "CancelBatch",
    ("GET", "/batches/files"): "ListFiles",
    ("POST", "/batches/files/{file_id}/delete"): "DeleteFile",
    ("GET", "/datasets"): "ListDatasets",
    ("POST", "/datasets"): "UploadDataset",
    ("GET", "/datasets/runs"): "ListRuns",
    ("GET", "/datasets/runs/socket"): "ListRuns",
    ("GET", "/datasets/{dataset_id}"): "GetDataset",
    ("GET", "/datasets/{dataset_id}/socket"): "ListRuns",
    ("POST", "/datasets/{dataset_id}/delete"): "DeleteDataset",
    ("GET", "/models/{model:path}"): "ListHistory",
    ("GET", "/history"): "ListHistory",
    ("GET", "/history/export.csv"): "ListHistory",
    ("GET", "/history/export.json"): "ListHistory",
    ("GET", "/leaderboard"): "GetLeaderboard",
    ("GET", "/leaderboard/socket"): "GetLeaderboard",
    ("GET", "/leaderboard/export.csv"): "GetLeaderboard",
    ("GET", "/queue"): "GetQueue",
    ("GET", "/queue/socket"): "GetQueue",
    ("GET", "/queue/limits"): "GetQueue",
    ("POST", "/queue/limits"): "SetLimits",
    ("GET", "/settings"): "ListModels",
    ("GET", "/docs"): Permission.PUBLIC,
    ("GET", "/docs/assets"): Permission.PUBLIC,
    ("GET", "/docs/oauth2-redirect"): Permission.PUBLIC,
    ("GET", "/openapi.json"): Permission.PUBLIC,
    ("GET", ME): _READ,
    ("GET", CHANGES): "ListChanges",
    ("GET", STORAGE): "GetStorage",
    ("POST", f"{BENCHMARKING}/run"): "SubmitRun",
    ("POST", f"{BENCHMARKING}/estimate"): "EstimateRun",
    ("GET", f"{BENCHMARKING}/results"): "ListRuns",
    ("GET", f"{BENCHMARKING}/results/{{job_id}}"): "GetSummary",
    ("GET", f"{BENCHMARKING}/results/{{job_id}}/export"): "ExportRun",
    ("POST", f"{BENCHMARKING}/cancel/{{job_id}}"): "CancelRun",
    ("POST", f"{BENCHMARKING}/retry/{{job_id}}"): "RetryRun",
    ("POST", f"{BENCHMARKING}/pause/{{job_id}}"): "PauseRun",
    ("POST", f"{BENCHMARKING}/resume/{{job_id}}"): "ResumeRun",
    ("POST", f"{BENCHMARKING}/reclose/{{job_id}}"): "RecloseRun",
    ("POST", f"{BENCHMARKING}/rescore/{{job_id}}"): "RescoreTask",
    ("POST", f"{BENCHMARKING}/compare"): "CompareRuns",
    ("GET", f"{BENCHMARKING}/leaderboard"): "GetLeaderboard",
    ("GET", f"{BENCHMARKING}/history"): "ListHistory",
    ("GET", QUEUE): "GetQueue",
    ("GET", LIMITS): "GetLimits",
    ("PATCH", LIMITS): "SetLimits",
    ("POST", ROLLOUT_TASKS): "UploadTasks",
    ("GET", ARTIFACTS): "ListArtifacts",
    ("GET", f"{ARTIFACTS}/{{execution}}/{{name}}"): "ReadArtifact",
    ("POST", ROLLOUTS): "SubmitRollouts",
    ("GET", ROLLOUTS): "ListRolloutsOrders",
    ("GET", f"{ROLLOUTS}/{{order_id}}"): "GetRolloutsOrder",
    ("GET", SUITES): "ListSuites",
    ("POST", SUITES): "AddSuite",
    ("GET", f"{SUITES}/{{suite}}/tasks/{{task}}/samples/{{row}}"): "ShowSample",
    ("DELETE", f"{SUITES}/{{suite}}/versions/{{version}}"): "DeleteSuite",
    ("GET", MODELS): "ListModels",
    ("GET", "/admin/models"): "ListModels",
    ("GET", DATASETS): "ListDatasets",
    ("POST", UPLOADS): "UploadDataset",
    ("GET", f"{DATASETS}/{{dataset_id}}"): "GetDataset",
    ("GET", f"{DATASETS}/{{dataset_id}}/preview"): "PreviewDataset",
    ("DELETE", f"{DATASETS}/{{dataset_id}}"): "DeleteDataset",
    ("GET", DATASET_RUNS): "ListRuns",
    ("POST", f"{DATASET_RUNS}/run"): "SubmitRun",
    ("GET", f"{DATASET_RUNS}/side-by-side"): "ListSideBySide",
    ("GET", f"{DATASET_RUNS}/golden/export"): "ExportGoldenAnswers",
    ("GET", f"{DATASET_RUNS}/{{benchmark_id}}"): "GetSummary",
    ("DELETE", f"{DATASET_RUNS}/{{benchmark_id}}"): "DeleteRun",
    ("GET", f"{DATASET_RUNS}/{{benchmark_id}}/golden/changes"): "ListMarkChanges",
    ("PUT", f"{DATASET_RUNS}/{{benchmark_id}}/golden"): "MarkAnswers",
    ("DELETE", f"{DATASET_RUNS}/{{benchmark_id}}/golden"): "MarkAnswers",
    ("PUT", f"{DATASET_RUNS}/{{benchmark_id}}/wrong"): "MarkAnswers",
    ("GET", f"{DATASET_RUNS}/{{benchmark_id}}/results"): "ListOutcomes",
    ("GET", f"{DATASET_RUNS}/{{benchmark_id}}/export"): "ExportRun",
    ("POST", f"{DATASET_RUNS}/{{benchmark_id}}/cancel"): "CancelRun",
    ("POST", f"{DATASET_RUNS}/{{benchmark_id}}/pause"): "PauseRun",
    ("POST", f"{DATASET_RUNS}/{{benchmark_id}}/resume"): "ResumeRun",
    ("POST", f"{DATASET_RUNS}/{{benchmark_id}}/retry"): "RetryRun",
    ("POST", f"{DATASET_RUNS}/{{benchmark_id}}/reclose"): "RecloseRun",
    ("GET", FILES): "ListFiles",
    ("POST", FILES): "UploadFile",
    ("GET", f"{FILES}/{{file_id}}"): "GetFile",
    ("DELETE", f"{FILES}/{{file_id}}"): "DeleteFile",
    ("GET", f"{FILES}/{{file_id}}/content"): "ReadFile",
    ("GET", BATCHES): "ListBatches",
    ("POST", BATCHES): "CreateBatch",
    ("GET", f"{BATCHES}/{{batch_id}}"): "GetBatch",
    ("POST", f"{BATCHES}/{{batch_id}}/cancel"): "CancelBatch",
    ("GET", OPENAI_MODELS): "ListModels",
    ("GET", f"{OPENAI_MODELS}/{{model:path}}"): "ListModels",
}


def method_permission(name: str) -> Permission:
    """The permission of a gRPC method, by its name without its service."""
    return METHODS.get(name, Permission.INTERNAL)


def route_permission(http_method: str, path: str | None) -> Permission:
    """`path` is that of the route, with its parameters in braces; None where no route matches."""
    if path is None:
        # The answer is 404 or 405. The request still counts against the limit of its caller.
        return _READ if http_method in READING_METHODS else _CHANGE
    operation = ROUTES.get(("GET" if http_method == "HEAD" else http_method, path), Permission.INTERNAL)
    return operation if isinstance(operation, Permission) else method_permission(operation)
