"""On which terms a run was made: runs on other terms are never ranked or compared in silence."""

from dataclasses import dataclass

from services.results.runs.run_record import RunPlan, ScoringMethod
from services.results.scores.task_scoring import OutputType


@dataclass(frozen=True, slots=True)
class RunTerms:
    """`num_fewshot` None: as each task says; `limit` None: all rows."""

    scoring_method: ScoringMethod
    num_fewshot: int | None = None
    suite_version: int = 0
    limit: int | None = None
    missing_tasks: tuple[str, ...] = ()
    stand_in_tasks: tuple[str, ...] = ()
    is_truncated_left: bool = False

    @property
    def flaws(self) -> tuple[str, ...]:
        """Why such a run cannot stand beside whole ones, whatever way those were scored."""
        found = (
            "" if self.limit is None else f"limit {self.limit}",
            f"stand-in rows: {', '.join(self.stand_in_tasks)}" if self.stand_in_tasks else "",
            f"without tasks: {', '.join(self.missing_tasks)}" if self.missing_tasks else "",
            "prompts cut from the left" if self.is_truncated_left else "",
        )
        return tuple(flaw for flaw in found if flaw)

    @property
    def is_whole(self) -> bool:
        return not self.flaws

    @property
    def text(self) -> str:
        """Equal for equal terms only."""
        way = (
            self.scoring_method.name.lower(),
            _shots(self.num_fewshot),
            f"suite version {self.suite_version}",
        )
        return "; ".join((*way, *self.flaws))

    def differences(self, other: "RunTerms") -> tuple[str, ...]:
        """How a run on these terms was made otherwise than one on the others; flaws are apart from that."""
        found = (
            (self.scoring_method, other.scoring_method, f"scored by {self.scoring_method.name.lower()}"),
            (self.num_fewshot, other.num_fewshot, _shots(self.num_fewshot)),
            (self.suite_version, other.suite_version, f"suite version {self.suite_version}"),
        )
        return tuple(phrase for own, others, phrase in found if own != others)


def terms_of(plan: RunPlan) -> RunTerms:
    """Where nothing is chosen from, the way to score choices says nothing: such a run is generated."""
    is_generated = all(scoring.output_type is OutputType.GENERATE_UNTIL for scoring in plan.scorings)
    return RunTerms(
        scoring_method=ScoringMethod.GENERATE if is_generated else plan.scoring_method,
        num_fewshot=plan.facts.num_fewshot,
        suite_version=plan.facts.suite_version,
        limit=plan.facts.limit,
        missing_tasks=plan.facts.missing_tasks,
        stand_in_tasks=tuple(task.task for task in plan.tasks if task.provenance.is_stand_in),
        is_truncated_left=plan.is_truncated_left,
    )


def _shots(num_fewshot: int | None) -> str:
    if num_fewshot is None:
        return "shots as each task says"
    return "1 shot" if num_fewshot == 1 else f"{num_fewshot} shots"
