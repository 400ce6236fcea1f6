"""What people are asked of the answers of a run: the question of a judge, on its scale."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from proctor.values.judging.scale import YES_NO, scale_of_options
from proctor.values.metrics.catalogue import VERDICT
from services.results.annotations.errors import PairsNotAnnotated
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.run_plan import RunPlan

# What is asked of the answers of a run without a judge.
CORRECTNESS = "correctness"


@dataclass(frozen=True, slots=True)
class Question:
    """Asked of the answers of `run_id`. `name`: of the judge prompt. `labels`: label to score, 0 to 1."""

    run_id: str
    name: str
    labels: Mapping[str, float]

    @property
    def key(self) -> str:
        """The same for judges of one name and scale: people and judges answer one question then."""
        return f"{self.name} {','.join(f'{label}={score!r}' for label, score in self.labels.items())}"

    @property
    def is_of_numbers(self) -> bool:
        """The labels are grades: their order counts."""
        return all(label.isdigit() for label in self.labels)


@dataclass(frozen=True, slots=True)
class VerdictPlace:
    """A sample of a judging run. `place`: of a pair where the judged answer is shown; else ""."""

    run_id: str
    judged: OutcomeKey
    sample: int
    place: str


def question_of(plan: RunPlan) -> Question:
    """Of a judging run what its judge is asked, of another run whether its answers are correct.

    Raises PairsNotAnnotated.
    """
    run_id = plan.judged_run_id
    if run_id is None:
        return Question(plan.run_id, CORRECTNESS, YES_NO.labels)
    [task] = plan.tasks
    uses = task.scoring.metrics
    if [use.name for use in uses] != [VERDICT]:
        raise PairsNotAnnotated(run_id=plan.run_id)
    return Question(run_id, task.task, scale_of_options(json.loads(uses[0].options_json or "{}")).labels)


def asks(plan: RunPlan, question: Question) -> bool:
    """Whether it is a judging run that is asked the question."""
    if plan.judged_run_id != question.run_id:
        return False
    try:
        return question_of(plan).key == question.key
    except PairsNotAnnotated:  # a prompt of pairs may have any name
        return False
