"""Rows in the object store: read from any row on, fetching no more than they lie in."""

import json

from zstandard import ZstdDecompressor

from services.scheduler.uploads.storage.store_parts import FRAME_ROWS, PART_BYTES, index_from_json, index_key
from tests.fakes.storage.checked_files import PREFIX, CheckedFiles, jsonl


def test_rows_are_read_from_any_row_on() -> None:
    files = CheckedFiles()
    count = 2 * FRAME_ROWS + 5
    checked = files.check(jsonl({"prompt": f"question {number}"} for number in range(count)))
    whole = files.rows(checked)
    assert [row.doc_id for row in whole] == list(range(count))
    for first in (0, 1, FRAME_ROWS - 1, FRAME_ROWS, count - 1, count, count + 7):
        assert files.rows(checked, first) == whole[first:]


def test_late_row_costs_one_frame() -> None:
    files = CheckedFiles()
    checked = files.check(jsonl({"prompt": f"question {number}"} for number in range(10 * FRAME_ROWS)))
    files.objects.fetched.clear()
    [last] = files.rows(checked, 10 * FRAME_ROWS - 1)
    assert json.loads(last.body_json) == {"prompt": f"question {10 * FRAME_ROWS - 1}"}
    assert len(files.objects.fetched) == 1


def test_heavy_rows_have_frames_of_their_own_and_a_part_is_a_file_by_itself() -> None:
    files = CheckedFiles()
    # What hardly compresses: parts fill up.
    texts = [bytes((number * row) % 251 for number in range(3000)).hex() * 250 for row in range(1, 12)]
    checked = files.check(jsonl({"prompt": text} for text in texts))
    index = index_from_json(files.objects.contents[index_key(PREFIX)])
    assert [frame.first_doc_id for frame in index.frames] == list(range(11))
    assert [json.loads(row.body_json)["prompt"] for row in files.rows(checked)] == texts
    part = files.objects.contents[f"{PREFIX}/rows-000000.jsonl.zst"]
    assert ZstdDecompressor().stream_reader(part, read_across_frames=True).read().count(b"\n") == 11
    assert len(part) < PART_BYTES


def test_nothing_more_is_stored_behind_the_first_fault() -> None:
    files = CheckedFiles()
    files.check(jsonl([{"prompt": ""}, *({"prompt": f"{number}"} for number in range(3 * FRAME_ROWS))]))
    assert files.objects.contents == {}
