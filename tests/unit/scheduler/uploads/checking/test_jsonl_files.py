"""Files of JSON lines: what is taken, what is refused and in which words, wherever chunks are cut."""

import json
import random

import pytest

from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.uploads.dataset import DatasetFormat, RowFacts
from services.scheduler.uploads.errors import DatasetTooLarge
from services.scheduler.uploads.faults import MAX_FAULT_CHARACTERS
from tests.fakes.storage.checked_files import (
    NO_LIMITS,
    CheckedFiles,
    batch_line,
    faults_of,
    jsonl,
    problem_of,
)

CHAT = [{"role": "user", "content": "Hi"}]
REMOTE_IMAGE = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data"}}


def test_rows_are_kept_as_they_would_be_asked() -> None:
    files = CheckedFiles()
    lines = [
        {"prompt": "One and one?", "target": 2, "metadata": {"level": 1}},
        {"messages": CHAT, "target": "hello"},
    ]
    checked = files.check(jsonl(lines))
    assert checked.facts == RowFacts(2, 2, (), "")
    first, second = files.rows(checked)
    assert (first.doc_id, first.row_id, first.target) == (0, "0", "2")
    assert json.loads(first.body_json) == {"prompt": "One and one?"}
    assert json.loads(first.metadata_json) == {"level": 1}
    assert (second.row_id, json.loads(second.body_json), second.metadata_json) == (
        "1",
        {"messages": CHAT},
        b"",
    )


def test_batch_requests_are_kept_with_the_parameters_of_their_bodies() -> None:
    files = CheckedFiles()
    body = {"model": "m", "prompt": "x", "temperature": 0.5, "seed": 7}
    checked = files.check(jsonl([batch_line(body=body, url="/v1/completions")]))
    assert checked.facts == RowFacts(1, 0, ("m",), "/v1/completions")
    [row] = files.rows(checked)
    assert (row.row_id, json.loads(row.body_json)) == ("r0", body)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (batch_line(custom_id=""), "custom_id"),
        (batch_line(custom_id=7), "custom_id"),
        (batch_line(custom_id="x" * 513), "custom_id"),
        (batch_line(method="GET"), "method"),
        (batch_line(url=["x"]), "url"),
        (batch_line(body="x"), "body"),
        (batch_line(more=1), "more"),
        (batch_line(body={"messages": CHAT, "model": ""}), "body.model"),
        (batch_line(body={"messages": CHAT, "stream": True}), "body.stream"),
        (batch_line(body={"messages": []}), "body.messages"),
        (batch_line(body={"messages": ["x"]}), "body.messages[0]"),
        (batch_line(body={"messages": [*CHAT, {"role": "me", "content": "x"}]}), "body.messages[1].role"),
        (batch_line(body={"messages": [{"role": ["user"], "content": "x"}]}), "body.messages[0].role"),
        (batch_line(body={"messages": [{"role": "user"}]}), "body.messages[0].content"),
        (
            batch_line(body={"messages": [{"role": "user", "content": [{"text": "x"}]}]}),
            "body.messages[0].content[0]",
        ),
        (batch_line(url="/v1/completions", body={"messages": CHAT}), "body.prompt"),
        (
            batch_line(body={"messages": CHAT, "chat_template_kwargs": {"chat_template": "{{ 1 }}"}}),
            "body.chat_template_kwargs",
        ),
        (batch_line(body={"messages": CHAT, "n": 100}), "body.n"),
        (batch_line(body={"messages": CHAT, "web_search_options": {}}), "body.web_search_options"),
        (
            batch_line(body={"messages": [{"role": "user", "content": [REMOTE_IMAGE]}]}),
            "body.messages[0].content[0]",
        ),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x", "messages": CHAT}, ""),
        ({"target": "x"}, ""),
        ({"prompt": "x", "id": ""}, "id"),
        ({"prompt": "x", "id": True}, "id"),
        ({"prompt": "x", "target": ["a"]}, "target"),
        ({"prompt": "x", "target": True}, "target"),
        ({"prompt": "x", "metadata": "x"}, "metadata"),
        ({"prompt": "x", "extra": 1}, "extra"),
        ({"prompt": "a\0b"}, "prompt"),
        ({"prompt": "x", "metadata": {"deep": [1, {"er": "\0"}]}}, "metadata.deep[1].er"),
        ("x", ""),
        (None, ""),
    ],
)
def test_fault_names_line_and_field_and_nothing_is_kept(line: object, field: str) -> None:
    files = CheckedFiles()
    checked = files.check(jsonl([line]))
    assert [(fault.line, fault.field) for fault in checked.faults] == [(1, field)]
    assert checked.facts is None
    assert checked.faults[0].problem.endswith(".")


@pytest.mark.parametrize(
    "line",
    [
        {"prompt": r"a backslash and \u0000"},
        {"messages": [{"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"prompt": "x", "id": 7, "target": 1.5, "metadata": None},
    ],
)
def test_unusual_lines_are_taken(line: object) -> None:
    assert faults_of(jsonl([line])) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "The file is empty. Upload one with at least one line."),
        (b"\xef\xbb\xbf\n \n", "The file is empty. Upload one with at least one line."),
        (b'{"prompt": "x"', "It is not valid JSON: unexpected end of data, at character 15."),
        (
            b'{"prompt": NaN}',
            "It is not valid JSON: unexpected character, expected a JSON value, at character 12.",
        ),
        (b'{"prompt": "\xe9"}', "Its bytes are not valid UTF-8, from byte 13 on."),
        (b'{"prompt": "\0"}', "It holds a NUL character, at byte 13. Leave it out."),
        (b'{"prompt": ' + b"[" * 2000, "It is not valid JSON: depth limit exceeded, at character 1036."),
        (
            b'{"prompt": "x", "metadata": {"x": ' + b"[" * 300 + b"]" * 300 + b"}}",
            "The row cannot be kept as JSON: recursion limit reached.",
        ),
        (b'{"prompt": "\\ud800"}', "It is not valid JSON: no low surrogate in string, at character 13."),
    ],
)
def test_what_is_no_json_is_reported_in_a_sentence(content: bytes, problem: str) -> None:
    assert problem_of(content) == problem


def test_blank_lines_are_skipped_but_not_for_ever() -> None:
    line = b'{"prompt": "x"}\n'
    assert faults_of(line * 2 + b"\n \r\n\n") == []
    assert faults_of(line + b"\n" * 200_000) == [(0, "")]
    assert faults_of(b"\n" + line + b"\n\n" + line) == []
    assert faults_of(line + b"\n" + line + b"{") == [(4, "")]


def test_rows_are_numbered_without_blank_lines() -> None:
    files = CheckedFiles()
    rows = files.rows(files.check(b'\n{"prompt": "x"}\n\n{"prompt": "y"}\n'))
    assert [row.row_id for row in rows] == ["0", "1"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_ends_of_lines_and_the_mark_at_the_start_do_not_matter(end: bytes) -> None:
    files = CheckedFiles()
    content = b"\xef\xbb\xbf" + end.join(jsonl([batch_line(0)]).strip() for _ in "x")
    assert len(files.rows(files.check(content))) == 1


def test_line_may_have_4_mib_and_not_more() -> None:
    frame = len(jsonl([{"prompt": ""}])) - 1
    fits = jsonl([{"prompt": "x" * (MAX_ROW_BYTES - frame - len('"id":"0","body":{}'))}])
    assert faults_of(fits) == []
    longer = jsonl([{"prompt": "x"}, {"prompt": "x" * MAX_ROW_BYTES}, {"prompt": 3}])
    assert faults_of(longer) == [(2, ""), (3, "prompt")]


def test_line_has_2048_messages_and_not_more() -> None:
    assert faults_of(jsonl([{"messages": CHAT * 2048}])) == []
    [fault] = faults_of(jsonl([{"messages": CHAT * 2049}]))
    assert fault == (1, "messages")


def test_first_20_faults_are_named_by_line_and_all_are_counted() -> None:
    lines = [batch_line(number, method="GET" if number % 2 else "POST") for number in range(100)]
    lines[3]["custom_id"] = lines[2]["custom_id"]
    checked = CheckedFiles().check(jsonl(lines))
    assert checked.fault_count == 51
    named = [fault.line for fault in checked.faults]
    assert named == sorted([4, *range(2, 40, 2)])
    assert [fault.field for fault in checked.faults if fault.line == 4] == ["custom_id", "method"]


def test_repeated_id_names_the_line_that_had_it_first() -> None:
    lines = [batch_line(number % 3) for number in range(5)]
    checked = CheckedFiles().check(jsonl(lines))
    reported = [(fault.line, fault.problem) for fault in checked.faults]
    assert reported == [(4, "It repeats the id of line 1."), (5, "It repeats the id of line 2.")]


@pytest.mark.parametrize(
    ("second", "field"),
    [
        (batch_line(1, body={"model": "other", "messages": CHAT}), "body.model"),
        (batch_line(1, url="/v1/completions", body={"prompt": "x"}), "url"),
        ({"prompt": "x"}, ""),
    ],
)
def test_lines_agree_with_the_first(second: object, field: str) -> None:
    assert faults_of(jsonl([batch_line(0), second, batch_line(2)])) == [(2, field)]


def test_model_may_be_left_out_of_some_lines() -> None:
    files = CheckedFiles()
    checked = files.check(jsonl([batch_line(0, body={"messages": CHAT}), batch_line(1)]))
    assert checked.facts == RowFacts(2, 0, ("m",), "/v1/chat/completions")


def test_all_lines_have_an_id_or_none() -> None:
    lines = [{"prompt": "x"}, {"prompt": "x", "id": "a"}, {"prompt": "x"}]
    assert faults_of(jsonl(lines)) == [(2, "id")]
    assert faults_of(jsonl(lines[1:])) == [(2, "id")]


def test_result_is_the_same_wherever_pieces_are_cut() -> None:
    draw = random.Random(7)
    lines = [batch_line(number) for number in range(30)]
    lines[9]["custom_id"], lines[12]["url"] = "r3", "/v1/nope"
    for content in (jsonl(lines), jsonl(lines[:9]), b"\xef\xbb\xbf" + jsonl(lines[:5])[:-1], b"\n\n"):
        wanted = CheckedFiles().check(content)
        for size in (1, 2, 3, 7, *(draw.randrange(4, 999) for _ in range(10))):
            assert CheckedFiles().check(content, piece_bytes=size) == wanted


def test_limits_end_an_upload_that_goes_on() -> None:
    content = jsonl([{"prompt": "x"}] * 100)
    limits = [
        (type(NO_LIMITS)(1599, 2**40, 2**40), "more than 1599 bytes, which"),
        (type(NO_LIMITS)(2**40, 1599, 2**40), "more than 1599 bytes decompressed"),
        (type(NO_LIMITS)(2**40, 2**40, 99), "more than 99 rows"),
    ]
    for limit, sentence in limits:
        with pytest.raises(DatasetTooLarge, match=sentence):
            CheckedFiles(limits=limit).check(content)
    exact = type(NO_LIMITS)(len(content), 10 * len(content), 100)
    assert CheckedFiles(limits=exact).check(content).facts is not None


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("x.csv", b"prompt\nx\n", DatasetFormat.CSV),
        ("x.CSV.gz", b"prompt\nx\n", DatasetFormat.CSV),
        ("x", b"prompt\nx\n", DatasetFormat.CSV),
        ("x", b' {"prompt": "x"}', DatasetFormat.JSONL),
        ("x.ndjson.zst", b'{"prompt": "x"}', DatasetFormat.JSONL),
    ],
)
def test_format_is_distinguished_from_the_name_and_the_first_bytes(
    name: str, content: bytes, form: DatasetFormat
) -> None:
    assert CheckedFiles().check(content, name).format is form


@pytest.mark.parametrize(
    "line", [{"prompt": "x", "y" * 1_000_000: 1}, {"prompt": "x", "metadata": {"y" * 1_000_000: "\0"}}]
)
def test_field_of_a_fault_is_cut_however_long_the_file_names_it(line: object) -> None:
    [fault] = CheckedFiles().check(jsonl([line])).faults
    assert 0 < len(fault.field) <= MAX_FAULT_CHARACTERS
    assert 0 < len(fault.problem) <= MAX_FAULT_CHARACTERS
