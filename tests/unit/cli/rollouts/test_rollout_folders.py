"""The folder of a rollout has the files and fields that scripts look for."""

import json
from pathlib import Path

import pytest

from proctor.cli.rollouts.folders import OrderedRun, RolloutFolders, load_folders
from proctor.client.errors import NotFound
from proctor.v1 import outcome_pb2

RUBRIC = {
    "criterion": "It doubles:\n- a | b",
    "weight": 2.0,
    "score": 0.5,
    "max_score": 1.0,
    "weighted_score": 1.0,
    "test_count": 2,
    "tests_passed": 1,
}
TESTS = {
    "tests/test_a.py": {"success": True, "output": "1 passed"},
    "tests/test_b.py": {"success": False, "output": "1 failed"},
}
STEPS = [{"source": "user"}, {"source": "agent", "metrics": {}, "tool_calls": [{}]}]


def written(folder: Path) -> tuple[RolloutFolders, Path]:
    folders = RolloutFolders(folder, "mine", "20260101__00-00-00", {"name": "mine"})
    run = OrderedRun("run", "openai/x", [1], 1, ["tasks/a"], ["a"], [{"git_url": "", "branch": "main"}])
    folders.runs.append(run)
    record = {
        "ended": "submitted",
        "score": 0.5,
        "detail": "1 of 2 test scripts passed",
        "rubrics": {"right": RUBRIC},
        "test_results": TESTS,
        "rewards": {"speed": 2.0},
        "suspicions": [],
        "verifier_log": "log",
        "diff": "--- a/x.py\n+++ b/x.py\n-a\n+b\n--- a/old.py\n+++ /dev/null\nFiles a/z and b/z differ\n",
        "agent_notes": "I mended it.\n",
        "trajectory": {"steps": STEPS},
    }
    outcome = outcome_pb2.RecordedOutcome(doc_id=0, scores={"reward": 0.5})
    outcome.outcome.answer.body_json = json.dumps(record)
    outcome.outcome.usage.prompt_tokens, outcome.outcome.usage.completion_tokens = 10, 5
    assert folders.add(run, outcome) == 1
    folders.save()
    return folders, folder / "runs" / "20260101__00-00-00-1"


def test_the_layout_is_that_of_the_promise(tmp_path: Path) -> None:
    folders, run = written(tmp_path)
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    stamp = "rollouts/mine/20260101__00-00-00"
    inner = (
        "artifacts/diff.patch",
        "artifacts/notes.md",
        "artifacts/repo_info.json",
        "artifacts/trajectory.json",
        "evaluation_results.json",
        "scoring_results.md",
        "logs/eval.log",
    )
    assert files == {
        f"{stamp}/manifest.json",
        f"{stamp}/runs.txt",
        f"{stamp}/task_results/{run.name}.json",
        *(f"runs/{run.name}/{path}" for path in inner),
    }
    manifest = json.loads((folders.folder / "manifest.json").read_text())
    assert manifest.keys() >= {"config", "name", "created_at", "results"}
    assert manifest["results"][0].keys() >= {"task_dir", "run_id", "run_dir", "status", "launch_rc"}
    assert (folders.folder / "runs.txt").read_text() == f"{run}\n"


def test_an_evaluation_has_the_fields_that_scripts_read(tmp_path: Path) -> None:
    _, run = written(tmp_path)
    evaluation = json.loads((run / "evaluation_results.json").read_text())
    assert evaluation["evaluation"] == {"rubrics": {"right": RUBRIC}, "total_score": 0.5, "max_score": 1.0}
    assert (evaluation["task_id"], evaluation["run_id"], evaluation["total_score"]) == ("a", run.name, 0.5)
    assert (evaluation["test_results"], evaluation["diff_lines"]) == (TESTS, 7)
    assert evaluation["custom_metrics"] == {"speed": 2.0}
    metrics = evaluation["agent_metrics"]
    assert (metrics["tokens_total"], metrics["tokens_events"], metrics["tool_calls_total"]) == (15, 1, 1)
    assert metrics.keys() >= {"tool_calls_codex_log", "tool_calls_sessions"}


def test_notes_are_the_agents_and_the_info_is_that_of_the_repository(tmp_path: Path) -> None:
    _, run = written(tmp_path)
    assert (run / "artifacts" / "notes.md").read_text() == "I mended it.\n"
    info = json.loads((run / "artifacts" / "repo_info.json").read_text())
    assert (info["branch"], info["changed_files"], info["diff_lines"]) == ("main", ["old.py", "x.py", "z"], 7)


def test_the_scoring_results_have_their_headings(tmp_path: Path) -> None:
    _, run = written(tmp_path)
    text = (run / "scoring_results.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# 📊 Scoring Results",
        "## Agent Metrics",
        "## Rubric Scores",
        "## Test Results",
        "## Agent's Changes",
        "## Final Summary",
    ]
    assert "| right | 2 | 0.50 | 1/2 | ❌ | It doubles: - a \\| b |" in text
    assert "- ✅ `tests/test_a.py`\n- ❌ `tests/test_b.py`" in text


def test_results_are_found_by_their_name_and_by_the_folder_that_a_run_prints(tmp_path: Path) -> None:
    folders, _ = written(tmp_path)
    for name in ("mine", str(folders.folder)):
        found = load_folders(tmp_path if name == "mine" else Path("elsewhere"), name, "")
        assert (found.folder, len(found.results)) == (folders.folder, 1)
    with pytest.raises(NotFound):
        load_folders(tmp_path, str(tmp_path / "runs"), "")
