"""Streaming is the exception (decision 0005): each RPC that streams is named here with its decision."""

from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DECISIONS = ROOT / "docs/decisions"
DECISION_OF = {
    "proctor.v1.SchedulerService.WatchRun": "0005-unary-by-default",
    "proctor.v1.ExportService.ExportRun": "0006-exports-are-a-stream",
    "proctor.v1.ExportService.ExportGoldenAnswers": "0006-exports-are-a-stream",
    "proctor.v1.FileService.ReadFile": "0006-exports-are-a-stream",
    "proctor.v1.FileService.UploadFile": "0012-uploads-are-a-stream",
    "proctor.v1.DatasetService.UploadDataset": "0012-uploads-are-a-stream",
    "proctor.v1.RolloutService.UploadTasks": "0012-uploads-are-a-stream",
    "proctor.v1.ImportService.ImportRun": "0012-uploads-are-a-stream",
}


def streaming_rpcs() -> set[str]:
    files = sorted((ROOT / "proctor/v1").glob("*_pb2.py"))
    descriptors = [import_module(f"proctor.v1.{file.stem}").DESCRIPTOR for file in files]
    return {
        method.full_name
        for descriptor in descriptors
        for service in descriptor.services_by_name.values()
        for method in service.methods
        if method.client_streaming or method.server_streaming
    }


def test_each_rpc_that_streams_has_its_decision() -> None:
    assert streaming_rpcs() == set(DECISION_OF)


def test_the_decisions_exist() -> None:
    missing = {name for name in DECISION_OF.values() if not (DECISIONS / f"{name}.md").is_file()}
    assert missing == set()
