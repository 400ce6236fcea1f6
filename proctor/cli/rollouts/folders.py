"""The folders that `proctor rollouts run` writes: a manifest, and one folder for each judged rollout."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from proctor.client.errors import NotFound, Refused
from proctor.v1 import outcome_pb2
from proctor.wire.enums import word_of

MANIFEST = "manifest.json"
# A file in the difference: changed or new, removed, or named only.
_CHANGED = re.compile(
    r"^\+\+\+ b/(.+)$|^--- a/(.+)\n\+\+\+ /dev/null$|^Files a/.+ and b/(.+) differ$", re.MULTILINE
)
_INFO = "artifacts/repo_info.json"
STAMP_FORM = "%Y%m%d__%H-%M-%S"


@dataclass(slots=True)
class OrderedRun:
    """A run of the order, with its rollouts at each task. `first` is the number of its first rollout."""

    run_id: str
    model: str
    rollouts: list[int]
    first: int
    task_dirs: list[str]
    task_ids: list[str]
    # Facts of the repository of each task.
    repositories: list[dict[str, Any]] = field(default_factory=list)

    def number(self, task: int, rollout: int) -> int:
        return self.first + sum(self.rollouts[:task]) + rollout

    @property
    def total(self) -> int:
        return sum(self.rollouts)


@dataclass(slots=True)
class RolloutFolders:
    """`root` is the data folder. The manifest is replaced as a whole, so a crash leaves the one before.

    `config` is the path of the configuration, or the facts of an order whose configuration is elsewhere.
    """

    root: Path
    name: str
    stamp: str
    config: str | Mapping[str, Any]
    runs: list[OrderedRun] = field(default_factory=list)
    results: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.root / "rollouts" / self.name / self.stamp

    @property
    def total(self) -> int:
        return sum(run.total for run in self.runs)

    def rollout_id(self, number: int) -> str:
        return f"{self.stamp}-{number}"

    def save_configuration(self, document: Mapping[str, Any]) -> None:
        """What the configuration said when it was ordered: its file may change."""
        path = self.root / "rollouts" / "temp" / f"rollout_{self.name}__{self.stamp}.json"
        _write_whole(path, json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")

    def save(self) -> None:
        document = {
            "config": self.config,
            "name": self.name,
            "created_at": self.stamp,
            "runs": [asdict(run) for run in self.runs],
            "results": [self.results[number] for number in sorted(self.results)],
        }
        _write_whole(self.folder / MANIFEST, _json(document))
        runs = "".join(f"{self.results[number]['run_dir']}\n" for number in sorted(self.results))
        _write_whole(self.folder / "runs.txt", runs)

    def add(self, run: OrderedRun, outcome: outcome_pb2.RecordedOutcome) -> int | None:
        """Writes the folder of a rollout; its number, or None where it is there already."""
        if self.is_there(run, outcome):
            return None
        self.write(run, outcome)
        return self.record(run, outcome)

    def is_there(self, run: OrderedRun, outcome: outcome_pb2.RecordedOutcome) -> bool:
        """False for an answer whose folder holds a failure: a retry has replaced the failure."""
        known = self.results.get(run.number(outcome.doc_id, outcome.outcome.rollout))
        return known is not None and (not known["launch_rc"] or outcome.outcome.HasField("failure"))

    def write(self, run: OrderedRun, outcome: outcome_pb2.RecordedOutcome) -> Path:
        """The folder of the rollout, with what its record holds."""
        rollout_id = self.rollout_id(run.number(outcome.doc_id, outcome.outcome.rollout))
        folder = self.root / "runs" / rollout_id
        self._check_own(folder, run)
        for path, text in _files(rollout_id, run, outcome.doc_id, outcome):
            _write_whole(folder / path, text)
        return folder

    def _check_own(self, folder: Path, run: OrderedRun) -> None:
        """Orders of one second have the same stamp. Raises Refused."""
        info = folder / _INFO
        if info.exists() and json.loads(info.read_text(encoding="utf-8"))["proctor_run_id"] != run.run_id:
            raise Refused(f"{folder} is of another run. Choose another folder of results.")

    def record(self, run: OrderedRun, outcome: outcome_pb2.RecordedOutcome) -> int:
        """Counts a rollout whose folder is written; its number."""
        task = outcome.doc_id
        number = run.number(task, outcome.outcome.rollout)
        rollout_id = self.rollout_id(number)
        is_failed = outcome.outcome.HasField("failure")
        result = {
            "task_dir": run.task_dirs[task],
            "run_id": rollout_id,
            "run_dir": str(self.root / "runs" / rollout_id),
            "status": "launch_failed" if is_failed else "launched",
            "launch_rc": int(is_failed),
            "task_id": run.task_ids[task],
            "model": run.model,
            "rollout": outcome.outcome.rollout,
            "score": None if is_failed else outcome.scores.get("reward"),
            "problem": outcome.outcome.failure.message if is_failed else "",
            "ended": _record_of(outcome).get("ended", ""),
            "verification": _record_of(outcome).get("verification", ""),
            "suspicions": _record_of(outcome).get("suspicions", []),
        }
        self.results[number] = result
        _write_whole(self.folder / "task_results" / f"{rollout_id}.json", _json(result))
        return number


def resumed_folders(fresh: RolloutFolders) -> RolloutFolders:
    """The same, with what an earlier call left in its folder. Raises Refused where that is of other runs."""
    manifest = fresh.folder / MANIFEST
    if manifest.exists():
        document = json.loads(manifest.read_text(encoding="utf-8"))
        theirs = {run["run_id"] for run in document["runs"]}
        if theirs != {run.run_id for run in fresh.runs}:
            raise Refused(f"{fresh.folder} holds other runs. Choose another folder.")
    files = sorted((fresh.folder / "task_results").glob("*.json"))
    fresh.results = _numbered(json.loads(file.read_text(encoding="utf-8")) for file in files)
    return fresh


def load_folders(root: Path, name: str, stamp: str) -> RolloutFolders:
    """`stamp` empty means the latest. `name` may be their folder itself, as a run prints it.

    Raises NotFound.
    """
    folder = Path(name)
    if (folder / MANIFEST).is_file() and folder.resolve().parents[1].name == "rollouts":
        folder = folder.resolve()
        root, name, stamp = folder.parents[2], folder.parent.name, folder.name
    below = root / "rollouts" / name
    stamps = sorted(path.parent.name for path in below.glob(f"*/{MANIFEST}"))
    if not stamps or (stamp and stamp not in stamps):
        known = f" There are: {', '.join(stamps)}." if stamps else ""
        raise NotFound(f"There are no rollouts {f'{name} {stamp}'.strip()} in {root}.{known}", "")
    stamp = stamp or stamps[-1]
    document = json.loads((below / stamp / MANIFEST).read_text(encoding="utf-8"))
    folders = RolloutFolders(root, name, stamp, document["config"])
    folders.runs = [OrderedRun(**run) for run in document["runs"]]
    folders.results = _numbered(document["results"])
    return folders


def _numbered(results: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    return {int(result["run_id"].rpartition("-")[2]): result for result in results}


def _files(
    rollout_id: str, run: OrderedRun, task: int, outcome: outcome_pb2.RecordedOutcome
) -> Iterator[tuple[str, str]]:
    failure, answer = outcome.outcome.failure, outcome.outcome.answer
    record = _record_of(outcome)
    evaluation = _evaluation(rollout_id, run.task_ids[task], outcome, record)
    yield "evaluation_results.json", _json(evaluation)
    yield "scoring_results.md", _scoring(rollout_id, run, task, evaluation)
    yield "artifacts/diff.patch", record.get("diff", "")
    yield "artifacts/notes.md", record.get("agent_notes") or answer.text
    info = {
        "task_dir": run.task_dirs[task],
        "model": run.model,
        "proctor_run_id": run.run_id,
        **(run.repositories[task] if run.repositories else {}),
        "changed_files": _changed(record.get("diff", "")),
        "diff_lines": len(record.get("diff", "").splitlines()),
    }
    yield _INFO, _json(info)
    if record:
        yield "artifacts/trajectory.json", _json(record["trajectory"])
    log = record.get("verifier_log", "")
    if failure.message:
        log = f"{word_of(outcome_pb2.FailureClass, failure.failure_class)}: {failure.message}\n"
    yield "logs/eval.log", log


def _changed(diff: str) -> list[str]:
    """Paths in the working folder, as the diff names them."""
    return sorted(dict.fromkeys(match[1] or match[2] or match[3] for match in _CHANGED.finditer(diff)))


def _record_of(outcome: outcome_pb2.RecordedOutcome) -> Mapping[str, Any]:
    body = outcome.outcome.answer.body_json
    record: Mapping[str, Any] = json.loads(body) if body else {}
    return record


def _evaluation(
    rollout_id: str, task_id: str, outcome: outcome_pb2.RecordedOutcome, record: Mapping[str, Any]
) -> dict[str, Any]:
    """`total_score` stands at both places at which scripts look for it."""
    score = record.get("score")
    usage = outcome.outcome.usage
    return {
        "task_id": task_id,
        "run_id": rollout_id,
        "evaluation": {"rubrics": record.get("rubrics", {}), "total_score": score, "max_score": 1.0},
        "test_results": record.get("test_results", {}),
        "total_score": score,
        "ended": record.get("ended", ""),
        "detail": record.get("detail", outcome.outcome.failure.message),
        "suspicions": record.get("suspicions", []),
        "diff_lines": len(record.get("diff", "").splitlines()),
        "agent_metrics": {
            "tokens_total": usage.prompt_tokens + usage.completion_tokens,
            "tokens_prompt": usage.prompt_tokens,
            "tokens_completion": usage.completion_tokens,
            "tokens_events": _answers(record),
            "tool_calls_total": _tool_calls(record),
            # Only agents with a session or a log of their own have these; ours has none.
            "tool_calls_sessions": 0,
            "tool_calls_codex_log": 0,
            "seconds": outcome.outcome.timing.total_seconds,
        },
        "custom_metrics": record.get("rewards", {}),
    }


def _tool_calls(record: Mapping[str, Any]) -> int:
    steps: Sequence[Mapping[str, Any]] = record.get("trajectory", {}).get("steps", [])
    return sum(len(step.get("tool_calls", ())) for step in steps)


def _answers(record: Mapping[str, Any]) -> int:
    """Answers of the model: each has a count of its tokens."""
    steps: Sequence[Mapping[str, Any]] = record.get("trajectory", {}).get("steps", [])
    return sum("metrics" in step for step in steps)


def _scoring(rollout_id: str, run: OrderedRun, task: int, evaluation: Mapping[str, Any]) -> str:
    score, metrics = evaluation["total_score"], evaluation["agent_metrics"]
    lines = [
        "# 📊 Scoring Results",
        "",
        f"**Run ID**: {rollout_id}  ",
        f"**Task**: {run.task_ids[task]}  ",
        f"**Model**: {run.model}  ",
        f"**Overall Score**: {'none' if score is None else f'{score:.2%}'}",
        "",
        "## Agent Metrics",
        "",
        f"- Tokens: {metrics['tokens_total']}",
        f"- Commands: {metrics['tool_calls_total']}",
        f"- Ended: {evaluation['ended'] or 'not judged'}",
        "",
        "## Rubric Scores",
        "",
        "| Rubric | Weight | Score | Tests | Status | Criterion |",
        "|---|---|---|---|---|---|",
        *_rubric_rows(evaluation["evaluation"]["rubrics"]),
        "",
        "## Test Results",
        "",
        *_test_rows(evaluation["test_results"]),
        "",
        "## Agent's Changes",
        "",
        f"{evaluation['diff_lines']} lines of `artifacts/diff.patch`.",
        "",
        "## Final Summary",
        "",
        str(evaluation["detail"]),
    ]
    return "\n".join(lines) + "\n"


def _test_rows(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if not results:
        yield "What the tests printed is in `logs/eval.log`."
    for path, result in results.items():
        yield f"- {_mark(float(result['success']))} `{path}`"


def _rubric_rows(rubrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, rubric in rubrics.items():
        score = rubric["score"]
        shown = "none" if score is None else f"{score:.2f}"
        tests = f"{rubric['tests_passed']}/{rubric['test_count']}"
        cells = (name, f"{rubric['weight']:g}", shown, tests, _mark(score), rubric["criterion"])
        yield f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """One cell of a table, whatever a task is called."""
    return " ".join(text.split()).replace("|", "\\|")


def _mark(score: float | None) -> str:
    return "✅" if score == 1.0 else "❌"


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _write_whole(path: Path, text: str) -> None:
    """Writes by rename: a reader meanwhile gets the old text or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(path)
