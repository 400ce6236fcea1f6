"""The verifier's result over what an agent left: a score from 0 to 1, and what it is made of."""

from dataclasses import dataclass, field

from proctor.values.rollout import RanTests


@dataclass(frozen=True, slots=True)
class RubricScore:
    """`score` is the share of its scripts that passed; None for a rubric without scripts, which counts 0."""

    rubric_id: str
    criterion: str
    weight: float
    passed: int
    scripts: int

    @property
    def score(self) -> float | None:
        return self.passed / self.scripts if self.scripts else None


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """Result of one test script of a rubric."""

    path: str
    is_passed: bool
    output: str


@dataclass(frozen=True, slots=True)
class VerifierResult:
    """`log` is what the verifier printed, cut in its middle; `detail` is one line.

    `rewards` are further numbers of a reward file, or those that tests of rubrics recorded; `ran` are the
    tests as far as they are known.
    """

    score: float
    detail: str
    log: str = ""
    rubrics: tuple[RubricScore, ...] = ()
    rewards: tuple[tuple[str, float], ...] = ()
    suspicions: tuple[str, ...] = ()
    scripts: tuple[ScriptResult, ...] = ()
    ran: RanTests = field(default_factory=RanTests)


def weighted(rubrics: tuple[RubricScore, ...]) -> float:
    """Σ weight · score ÷ Σ weight, where a rubric without scripts scores 0 and its weight counts."""
    total = sum(rubric.weight for rubric in rubrics)
    return sum(rubric.weight * (rubric.score or 0.0) for rubric in rubrics) / total
