"""Bytes that no tool writes: each log is refused in one sentence, or read without what cannot be kept."""

import gzip
import json
import struct
import zipfile
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest

from services.scheduler.imports.logged_run import ReadLimits
from tests.fakes.imports.read_logs import checked, lines, packed, problem_of, read
from tests.unit.scheduler.imports.test_harness_log import choice_line, text_line


def sample_file(line: bytes) -> bytes:
    return packed({"samples_qa.jsonl": line})


def test_an_archive_that_expands_without_end_is_refused() -> None:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples_qa.jsonl", b"\0" * 100_000_000)
    assert "expands to 100,000,000 bytes" in problem_of(content.getvalue())


def test_bytes_of_all_files_are_bounded_whatever_they_declare() -> None:
    content = packed({"samples_qa.jsonl": lines(*(text_line(doc, "none", 1.0) for doc in range(100)))})
    log, _ = checked(content, limits=ReadLimits(10_000_000, 5000, 1000), model="hf/m")
    assert "more than 5,000 bytes" in log.problem
    log, _ = checked(gzip.compress(b"x" * 1_000_000), "a.jsonl.gz", limits=ReadLimits(10_000_000, 5000, 1000))
    assert "more than 5,000 bytes" in log.problem


def test_what_lies_on_the_disk_is_bounded_as_a_file_that_is_sent() -> None:
    limits = ReadLimits(50_000, 50_000_000, 1000)
    log, _ = checked(gzip.compress(b"x" * 1_000_000), "a.jsonl.gz", limits=limits)
    assert log.problem == "It has more than 50,000 bytes decompressed."
    long = (text_line(doc, "none", 1.0, resps=[["5" * 2000]]) for doc in range(50))
    log, _ = checked(packed({"samples_qa.jsonl": lines(*long)}), limits=limits, model="hf/m")
    assert log.problem == "Its samples have more than 50,000 bytes. Import a part."


def test_answers_are_bounded() -> None:
    content = packed({"samples_qa.jsonl": lines(*(text_line(doc, "none", 1.0) for doc in range(11)))})
    log, _ = checked(content, limits=ReadLimits(10_000_000, 50_000_000, 10), model="hf/m")
    assert log.problem == "It has more than 10 answers. Import a part."


def test_bytes_as_sent_are_bounded() -> None:
    log, _ = checked(b"x" * 1000, limits=ReadLimits(100, 100, 1))
    assert log.problem == "It has more than 100 bytes."


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"doc_id": 0,', "is not JSON"),
        (b'{"doc_id": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"doc_id": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"x" * (17 * 1024 * 1024), "has more than 16,777,216 bytes"),
    ],
)
def test_a_line_that_is_no_sample_names_itself(line: bytes, problem: str) -> None:
    found = problem_of(sample_file(line), model="hf/m")
    assert found.startswith("Line 1 of samples_qa.jsonl")
    assert problem in found


def test_a_row_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"doc_id": 0, "target": "5", "arguments": [["q", {}]], "resps": [["5"]], '
    deep += b'"exact_match": 1, "doc": '
    deep += b'{"a": ' * 500 + b"1" + b"}" * 500 + b"}"
    assert problem_of(sample_file(deep), model="hf/m") == "Document 0 of qa is nested too deeply."


def test_a_sample_that_fits_no_message_is_refused() -> None:
    line = text_line(3, "none", 1.0, resps=[["x" * 5_000_000]], filtered_resps=["5"])
    assert problem_of({"samples_qa.jsonl": lines(line)}, model="hf/m").startswith(
        "Document 3 of qa has 5,000,"
    )


def test_what_cannot_be_stored_is_replaced() -> None:
    line = b'{"doc_id": 0, "target": "\\ud800", "arguments": [["a\\u0000b", {}]], "resps": [["\\udc00 5"]],'
    line += b' "filtered_resps": ["5"], "exact_match": NaN, "other": 1e999, "third": 1}'
    _, [sample] = read(sample_file(line), model="hf/m")
    assert sample.sample.prompt.text == "a\ufffdb"
    assert sample.sample.target.texts == ("\ufffd",)
    [answer] = sample.answers
    assert dict(answer.scores) == {"third": 1.0}


def test_numbers_that_no_order_has_are_unknown() -> None:
    line = text_line(0, "none", 1.0)
    line["arguments"] = [["q", {"max_gen_toks": 1e12, "temperature": "0.5", "top_k": 2**40}]]
    run, _ = read(sample_file(lines(line).encode()), model="hf/m")
    [task] = run.tasks
    assert json.loads(task.request_json) == {"temperature": 0.5, "top_k": 2**40}
    assert "max_tokens" in task.unknown


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_with_any_byte_changed_are_refused_or_read(method: int) -> None:
    packed_anew = BytesIO()
    with zipfile.ZipFile(packed_anew, "w", method) as archive:
        archive.writestr("samples_qa.jsonl", lines(text_line(0, "none", 1.0)))
    content = packed_anew.getvalue()
    for at in range(len(content)):
        log, samples = checked(content[:at] + b"\xff" + content[at + 1 :], model="hf/m")
        assert log.problem.endswith(".") or samples


def test_scores_of_several_kinds_are_taken_as_numbers() -> None:
    pair = {**text_line(0, "none", 1.0), "f1": [1, 0]}
    number = {**text_line(1, "none", 1.0), "f1": 0.5}
    run, [first, second] = read({"samples_qa.jsonl": lines(pair, number)}, model="hf/m")
    assert [(metric.name, metric.aggregation) for metric in run.tasks[0].metrics][1] == ("f1", "mean")
    assert ("f1" in first.answers[0].scores, second.answers[0].scores["f1"]) == (False, 0.5)


def test_two_texts_of_digits_are_no_pair_of_numbers() -> None:
    line = {**text_line(0, "none", 1.0), "bleu": ["5", "7"]}
    _, [sample] = read({"samples_qa.jsonl": lines(line)}, model="hf/m")
    assert dict(sample.answers[0].scores) == {"exact_match": 1.0}


def test_a_choice_without_a_weight_keeps_its_place() -> None:
    weights = [["-Infinity", "False"], ["-1.25", "True"]]
    line = choice_line(0, 1.0, filtered_resps=weights, resps=[[each] for each in weights])
    _, [sample] = read({"samples_qa.jsonl": lines(line)}, model="hf/m")
    [answer] = sample.answers
    assert answer.answer is not None
    assert (answer.prediction, answer.answer.choices) == ("no", ())


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x1f\x8b\x08\x00broken", b"[1, 2]", b"null", b"{}"]
)
def test_what_is_no_log_is_refused(content: bytes) -> None:
    for name in ("log.zip", "log.json", "log.jsonl"):
        assert problem_of(content, name).endswith(".")


def test_an_archive_without_files_is_refused() -> None:
    assert problem_of(packed({})) == "It is an archive without files."


def test_a_member_that_is_cut_is_refused() -> None:
    content = bytearray(packed({"samples_qa.jsonl": lines(text_line(0, "none", 1.0))}))
    # Where the compressed bytes begin: behind the local header and the name.
    at = 30 + len("samples_qa.jsonl") + struct.unpack_from("<H", content, 28)[0]
    content[at : at + 20] = b"\xff" * 20
    assert "cannot be read from the archive" in problem_of(bytes(content), model="hf/m")


@pytest.mark.parametrize(
    "document",
    [
        {"eval": [], "plan": 1},
        {"eval": {"task": "t", "model": "a/b"}, "plan": {}, "samples": [1, None, "x"]},
        {"evaluation_id": 1, "evaluation_results": 2},
        {"results": {"qa": 1}, "configs": {}, "samples": {"qa": [{"doc_id": 0, "arguments": 3, "acc": 1}]}},
        {"results": [{"task_id": "t", "is_resolved": "maybe"}]},
    ],
)
def test_documents_of_another_shape_are_refused_or_read(document: object) -> None:
    log, samples = checked(json.dumps(document).encode(), "log.json")
    assert log.problem.endswith(".") or samples


HOSTILE: Sequence[object] = (
    *(10**400, 2**64, -1, 1e308, None, True, "", "9" * 5000),
    *([], [[]], [None], {}, {"": ""}, {"a": {}}),
)


def places(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [at, *(place for key, one in inner for place in places(one, (*at, key)))]


def replaced(value: Any, place: tuple[str | int, ...], other: object) -> object:
    if not place:
        return other
    copied = value.copy()
    copied[place[0]] = replaced(value[place[0]], place[1:], other)
    return copied


@pytest.mark.parametrize("line", [text_line(0, "none", 1.0), choice_line(0, 1.0)], ids=["text", "choice"])
def test_any_value_of_a_line_may_be_another(line: dict[str, object]) -> None:
    for place in places(line):
        for other in HOSTILE:
            changed = replaced(line, place, other)
            log, samples = checked(sample_file(lines(changed, line).encode()), model="hf/m")
            assert log.problem.endswith(".") or samples, (place, other)
