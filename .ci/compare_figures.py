"""Compares the figures that a run printed with what Postgres holds, computed from the rows by plain SQL.

Usage: compare_figures.py PRINTED.json, while the local stack stands.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import asyncpg

from proctor.stack.defaults import default_state_dir
from proctor.stack.state import read_stack_state

TOLERANCE = 1e-12

# Only from what was answered and what was expected, not from the stored scores: the choice with the highest
# log-probability, the first of equals, against the index of the right one.
ACCURACY = """
SELECT t.task, count(*) AS n, avg((picked.choice = s.target_choice)::int::float8) AS accuracy
FROM results.outcomes AS o
JOIN results.run_tasks AS t ON t.run_id = o.run_id AND t.task_index = o.task_index
JOIN results.samples AS s ON s.sample_set_id = t.sample_set_id AND s.position = o.sample - t.first_sample
CROSS JOIN LATERAL (
    SELECT weighed.ordinal - 1 AS choice
    FROM jsonb_array_elements(o.choices) WITH ORDINALITY AS weighed (score, ordinal)
    ORDER BY (weighed.score ->> 0)::float8 DESC NULLS LAST, weighed.ordinal
    LIMIT 1
) AS picked
WHERE o.run_id = $1::uuid AND o.status <> 'failed'
GROUP BY t.task
"""


async def figures_of_postgres(run_id: str) -> dict[str, tuple[int, float]]:
    """Task to (n, accuracy)."""
    stack = read_stack_state(default_state_dir(os.environ, Path.cwd()))
    if stack is None:
        raise SystemExit("The local stack does not stand; start it with `proctor up --detach`.")
    connection = await asyncpg.connect(stack.postgres_dsn)
    try:
        return {row["task"]: (row["n"], row["accuracy"]) for row in await connection.fetch(ACCURACY, run_id)}
    finally:
        await connection.close()


def printed_accuracies(document: dict[str, Any]) -> dict[str, tuple[int, float]]:
    """Task to (n, accuracy) as the run printed them."""
    return {
        task["task"]: (figure["n"], figure["mean"])
        for task in document["summary"]["tasks"]
        for figure in task["metrics"]
        if figure["metric"] == "acc"
    }


def main() -> int:
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    printed = printed_accuracies(document)
    held = asyncio.run(figures_of_postgres(document["run"]["run_id"]))
    different = 0
    for task in sorted(printed.keys() | held.keys()):
        ours, theirs = printed.get(task), held.get(task)
        equal = ours is not None and theirs is not None and ours[0] == theirs[0]
        equal = equal and abs(ours[1] - theirs[1]) <= TOLERANCE  # type: ignore[index]  # not None when equal
        different += not equal
        print(f"{task:12} printed {ours}  Postgres {theirs}  {'equal' if equal else 'DIFFERENT'}")
    if not printed:
        print("The run printed no accuracy.")
    return 1 if different or not printed else 0


if __name__ == "__main__":
    sys.exit(main())
