"""The tasks of the second Open LLM Leaderboard, to run in lm-evaluation-harness and here."""

from collections.abc import Callable, Mapping

from proctor.values.scoring import OutputType
from services.scheduler.suites.suite import TaskDefinition
from tests.reference.evaluated_tasks import suites
from tests.reference.field_rows import made_rows
from tests.reference.instruction_rows import instruction_answer, instruction_rows
from tests.reference.lm_eval_cases import Case, Row, Rows, Said, formulas, nothing

_HARDEST = "Level 5"


def _file(task: TaskDefinition) -> str:
    """The task's file there, below the folder of the leaderboard."""
    part, _, name = task.name.removeprefix("leaderboard_").partition("_")
    files: Mapping[str, str] = {
        "bbh": f"bbh_mc/{task.rows.config}",
        "gpqa": f"gpqa/{task.rows.config}_zeroshot",
        "ifeval": "ifeval/ifeval",
        "math": f"math/math_{name.removesuffix('_hard')}",
        "mmlu": "mmlu_pro/mmlu_pro",
        "musr": f"musr/musr_{name}",
    }
    return f"leaderboard/{files[part]}.yaml"


def _rows(task: TaskDefinition) -> Rows:
    hub_id, config, split = task.rows.hub_id, task.rows.config, task.rows.split
    special: Mapping[str, Callable[[], list[Row]]] = {
        "Idavidrein/gpqa": lambda: _unturned(config),
        "DigitalLearningGmbH/MATH-lighteval": lambda: _hardest_first(config),
        "wis-k/instruction-following-eval": instruction_rows,
    }
    return special.get(hub_id, lambda: made_rows(hub_id, config, split))


def _hardest_first(config: str) -> list[Row]:
    """Then the others, which are left out."""
    rows = made_rows("DigitalLearningGmbH/MATH-lighteval", config, "test")
    return sorted(rows, key=lambda row: row["level"] != _HARDEST)


def _unturned(config: str) -> list[Row]:
    """Questions whose options stay in their order."""
    rows = made_rows("Idavidrein/gpqa", config, "train")
    return [{**row, "Question": (text := str(row["Question"])) + " " * (-len(text) % 4)} for row in rows]


def _case(task: TaskDefinition) -> Case:
    rows, shots = _rows(task), task.fewshot.num_fewshot
    said: Said = nothing
    if task.scoring.output_type is OutputType.GENERATE_UNTIL:
        said = instruction_answer if "ifeval" in task.name else formulas
    # Expressions are compared here as there, by another name. Where examples are rows, they are of a split
    # that is evaluated in other tasks.
    names = {"math": "exact_match"}
    return Case("leaderboard", task.name, _file(task), rows, rows, shots, said, names)


LEADERBOARD_CASES = tuple(_case(task) for task in suites().suite("leaderboard").tasks)
