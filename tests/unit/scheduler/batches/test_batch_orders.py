"""Orders of batches: windows, and errors of files in the codes of the protocol."""

from datetime import timedelta

import pytest

from services.scheduler.batches.stored_batch import window_of
from services.scheduler.batches.submit_batch import errors_of_file
from services.scheduler.uploads.add_dataset import content_of
from services.scheduler.uploads.checking.check_file import CheckFile, LineRules
from services.scheduler.uploads.dataset import DatasetContent, DatasetFormat, DatasetHeader
from services.scheduler.uploads.processes.upload_checks import DATASET_READERS
from services.scheduler.uploads.stored_file import FileFaults, FileId, FilePurpose, StoredFile
from tests.fakes.scheduler.surroundings import START
from tests.fakes.storage.checked_files import NO_LIMITS, PREFIX, batch_line, jsonl
from tests.fakes.storage.memory_objects import MemoryObjects

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("text", "hours"),
    [("1h", 1), ("24h", 24), ("168h", 168), ("60m", 1), ("90m", 1.5), ("10080m", 168), ("024h", 24)],
)
def test_window_is_of_hours_or_minutes(text: str, hours: float) -> None:
    assert window_of(text) == timedelta(hours=hours)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "24",
        "h",
        "0h",
        "59m",
        "169h",
        "10081m",
        "1d",
        "1.5h",
        "-2h",
        " 24h",
        "24H",
        "9999999h",
        "24h\n",
        "٢٤h",
    ],
)
def test_what_is_no_window_or_out_of_range_is_none(text: str) -> None:
    assert window_of(text) is None


def file_of(content: bytes, maximum: int | None = None) -> StoredFile:
    """As it is kept after a check."""
    rules = LineRules(is_batch_only=True, maximum=maximum)
    checking = CheckFile(DATASET_READERS, MemoryObjects(), NO_LIMITS, rules)
    checked = checking.check(DatasetHeader("x.jsonl", "ann", DatasetFormat.JSONL), iter([content]), PREFIX)
    kept: DatasetContent | None = None
    if checked.facts:
        kept = content_of(checked, checked.facts, PREFIX)
    faults = FileFaults(checked.faults, checked.fault_count)
    return StoredFile(
        FileId("file-1"),
        "x.jsonl",
        "ann",
        FilePurpose.BATCH,
        len(content),
        START,
        "files/1",
        None,
        kept,
        faults,
    )


def line(number: int = 0, **changes: object) -> bytes:
    return jsonl([batch_line(number, **changes)])


def without(field: str) -> bytes:
    whole = batch_line()
    del whole[field]
    return jsonl([whole])


MODEL_MISMATCH = {"model": "other", "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("content", "code", "param", "number"),
    [
        (b"", "empty_file", "", 0),
        (line() + b'{"custom_id": \n', "invalid_json_line", "", 2),
        (line() + b"\xff\xfe\n", "invalid_json_line", "", 2),
        (without("custom_id"), "missing_required_parameter", "custom_id", 1),
        (without("method"), "missing_required_parameter", "method", 1),
        (without("url"), "missing_required_parameter", "url", 1),
        (without("body"), "missing_required_parameter", "body", 1),
        (line(body={"model": "m"}), "missing_required_parameter", "body.messages", 1),
        (line(method="GET"), "invalid_request", "method", 1),
        (line(url="/v1/embeddings"), "invalid_request", "url", 1),
        (line(0) + line(0), "duplicate_custom_id", "custom_id", 2),
        (line(0) + line(1, body=MODEL_MISMATCH), "model_mismatch", "body.model", 2),
        (
            line(0) + line(1, url="/v1/completions", body={"model": "m", "prompt": "x"}),
            "url_mismatch",
            "url",
            2,
        ),
        (jsonl([{"prompt": "x"}]), "invalid_request", "", 1),
        (line() + jsonl([{"id": "a", "prompt": "x", "target": "y"}]), "invalid_request", "", 2),
        (b"[1]\n", "invalid_request", "", 0),
    ],
)
def test_fault_has_a_code_that_clients_know(content: bytes, code: str, param: str, number: int) -> None:
    [error] = errors_of_file(file_of(content), CHAT)
    assert (error.code, error.param, error.line) == (code, param, number)
    assert error.message.endswith((".", "…"))


def test_one_line_too_many_is_reported_of_the_whole_file() -> None:
    assert errors_of_file(file_of(line(0) + line(1), maximum=2), CHAT) == ()
    [error] = errors_of_file(file_of(line(0) + line(1) + line(2), maximum=2), CHAT)
    assert (error.code, error.line) == ("too_many_tasks", 0)


def test_file_for_another_endpoint_is_reported() -> None:
    [error] = errors_of_file(file_of(line()), "/v1/completions")
    assert (error.code, error.param) == ("url_mismatch", "url")
    assert CHAT in error.message
