"""Each broken batch file gets what its index expects: taken, or refused with the lines that are wrong."""

import json
import os
from pathlib import Path

import pytest

from tests.fakes.storage.checked_files import CheckedFiles

FOLDER = Path(os.environ.get("PROCTOR_DATA_DIR", "")) / "batch"
INDEX = FOLDER / "broken" / "INDEX.json"

pytestmark = pytest.mark.skipif(not INDEX.is_file(), reason="PROCTOR_DATA_DIR has no batch/broken")

FILES = json.loads(INDEX.read_text()) if INDEX.is_file() else []
FIRST_THAT_DIFFERS = "the first line that differs is named"


@pytest.mark.parametrize("expected", FILES, ids=lambda expected: Path(expected["file"]).stem)
def test_broken_batch_gets_what_is_expected(expected: dict[str, object]) -> None:
    content = (FOLDER / str(expected["file"])).read_bytes()
    files = CheckedFiles()
    checked = files.check(content, str(expected["file"]))
    lines = [fault.line for fault in checked.faults]
    if expected["expect"] == "accept":
        assert lines == []
        assert len(files.rows(checked)) == expected["lines"]
        return
    assert checked.facts is None
    if FIRST_THAT_DIFFERS in str(expected.get("rule")):
        models = [json.loads(line)["body"]["model"] for line in content.splitlines()]
        assert lines[0] == next(line for line, model in enumerate(models, 1) if model != models[0])
    else:
        # A file that is faulty as a whole has its fault at line 0.
        assert lines == (expected["bad_lines"] or [0])
    assert checked.fault_count == len(lines)


def test_whole_batch_of_5000_is_taken() -> None:
    files = CheckedFiles()
    checked = files.check((FOLDER / "batch_5000.jsonl").read_bytes())
    assert len(files.rows(checked)) == 5000
