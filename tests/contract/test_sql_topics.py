"""The SQL of a topic names tables of its own topic and of topics below it, as its imports do."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SERVICES = Path("services")
# The topic that a table or view belongs to.
OWNERS: Mapping[str, Mapping[str, str]] = {
    "scheduler": {
        "leadership": "leadership",
        **dict.fromkeys(("user_suites", "user_suite_versions", "user_suite_files"), "suites"),
        **dict.fromkeys(("dataset_contents", "datasets", "files", "unreferenced_prefixes"), "uploads"),
        **dict.fromkeys(("dataset_rows", "file_rows"), "uploads"),
        **dict.fromkeys(("task_sets", "task_bundles", "task_set_uses"), "uploads.task_sets"),
        **dict.fromkeys(("rollout_artifacts", "rollout_budgets"), "rollouts"),
        **dict.fromkeys(("limits", "user_priorities", "request_counts"), "limits"),
        **dict.fromkeys(("runs", "run_rows", "run_traces", "run_tasks", "deleted_runs"), "runs.lifecycle"),
        "user_admissions": "runs.admission",
        "shards": "planning",
        **dict.fromkeys(("batches", "batch_rows"), "batches"),
        "rollouts_orders": "rollouts",
        "changes": "changes",
        "pool_demands": "scaling",
    },
    "results": {
        **dict.fromkeys(("sample_sets", "samples", "deleted_sample_sets"), "samples"),
        **dict.fromkeys(("run_records", "run_tasks", "run_environments"), "runs"),
        **dict.fromkeys(("task_counts", "shard_counts"), "runs"),
        **dict.fromkeys(("outcomes", "current_outcomes", "run_gpu_seconds"), "outcomes"),
        **dict.fromkeys(("run_summaries", "close_leases"), "summaries"),
        "run_comparisons": "comparison",
        **dict.fromkeys(("closed_runs", "closed_run_leases", "history_entries"), "leaderboard"),
        **dict.fromkeys(("leaderboard_entries", "task_baselines"), "leaderboard"),
        **dict.fromkeys(("golden_answers", "wrong_answers", "mark_changes"), "answers"),
        **dict.fromkeys(("outcome_records", "resume_points"), "export"),
    },
}
_MADE = re.compile(r"\bCREATE (?:UNLOGGED )?(?:TABLE|VIEW)\s+(\w+)")
_RENAMED = re.compile(r"\bALTER TABLE (\w+) RENAME TO (\w+)")
_NAMED = re.compile(r"(?:\b(?:FROM|JOIN|INTO|UPDATE|USING|OF)\s+|,\s*)(?:LATERAL\s+)?([a-z_]+)\b(?!\s*\()")
_COMMENT = re.compile(r"--.*")


def layers_of(container: str) -> list[frozenset[str]]:
    """Topics as import-linter orders them, the highest first."""
    contracts = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [layers] = [one["layers"] for one in contracts["contracts"] if one.get("containers") == [container]]
    return [frozenset(layer.split(" | ")) for layer in layers]


def depth_of(service: str, topic: str) -> tuple[int, int]:
    """A topic within a topic is ordered by the layers of that."""
    top, _, inner = topic.partition(".")
    outer = next(at for at, layer in enumerate(layers_of(f"services.{service}")) if top in layer)
    if not inner:
        return outer, 0
    within = layers_of(f"services.{service}.{top}")
    return outer, next(at for at, layer in enumerate(within) if inner in layer)


def statements(file: Path) -> Iterator[tuple[str, str]]:
    """Each query by its name, without comments."""
    for part in file.read_text(encoding="utf-8").split("-- name: ")[1:]:
        name, _, statement = part.partition(":")
        yield name, _COMMENT.sub("", statement.partition("\n")[2])


def named_tables(service: str, statement: str) -> set[str]:
    return set(_NAMED.findall(statement)) & OWNERS[service].keys()


@pytest.mark.parametrize("service", OWNERS)
def test_every_table_has_an_owner(service: str) -> None:
    made: set[str] = set()
    for file in sorted((SERVICES / service / "migrations").glob("*.sql")):
        sql = file.read_text(encoding="utf-8")
        made.update(_MADE.findall(sql))
        for before, after in _RENAMED.findall(sql):
            made.remove(before)
            made.add(after)
    assert made == OWNERS[service].keys()


@pytest.mark.parametrize("service", OWNERS)
def test_sql_of_a_topic_names_no_table_of_a_topic_above_or_beside_it(service: str) -> None:
    root, wrong = SERVICES / service, []
    for file in sorted(root.rglob("queries.sql")):
        topic = ".".join(file.parent.relative_to(root).parts)
        for name, statement in statements(file):
            for table in named_tables(service, statement):
                owner = OWNERS[service][table]
                if owner != topic and depth_of(service, owner) <= depth_of(service, topic):
                    wrong.append(f"{file}: {name} names {table} of {owner}")
    assert wrong == []


def test_names_are_found_wherever_a_statement_has_them() -> None:
    statement = """
        WITH gone AS (DELETE FROM runs USING batches WHERE true RETURNING 1)
        UPDATE datasets SET name = '' FROM leadership, files
        WHERE EXISTS (SELECT FROM run_tasks JOIN shards USING (run_id)) FOR UPDATE OF limits
    """
    expected = {"runs", "batches", "datasets", "leadership", "files", "run_tasks", "shards", "limits"}
    assert named_tables("scheduler", statement) == expected
