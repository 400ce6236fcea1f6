"""Files that a task asks for by their paths are judged, wherever they lie."""

import json
from pathlib import Path

import pytest

from services.scheduler.rollouts.tasks.file_task_sets import read_path
from tests.harness.rollout_tasks import harbor_folder, terminal_bench_folder, write

NAMED = {
    "Write `/tmp/answer.txt`.": ("/tmp",),
    "Write /workspace/out/b.json. Then stop.": ("/workspace",),
    "Write /opt/kit/c.txt": ("/opt/kit",),
    "Write /unknown/d.txt": (),
    "Write /home/e.txt, /usr/lib/f.txt and /tests/g.txt": (),
    "Serve /api/users at http://x/tmp/answer.txt": (),
}


@pytest.mark.parametrize("instruction", NAMED)
@pytest.mark.parametrize("form", ["harbor", "terminal_bench"])
def test_files_that_instruction_and_tests_name_are_judged(
    tmp_path: Path, form: str, instruction: str
) -> None:
    tests = "cat /tmp/answer.txt /home/e.txt /usr/lib/f.txt /tests/g.txt /api/users /opt/kit/c.txt\n"
    tests += "ls '/workspace/out'\n"
    if form == "harbor":
        folder = harbor_folder(tmp_path / "a")
        write(folder, {"instruction.md": instruction, "tests/more.sh": tests})
    else:
        folder = terminal_bench_folder(tmp_path / "a")
        write(folder, {"task.yaml": json.dumps({"instruction": instruction}), "tests/more.sh": tests})
    [task] = read_path(folder).sound()
    assert task.folders == NAMED[instruction]
