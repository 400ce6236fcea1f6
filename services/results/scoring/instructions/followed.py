"""Which of the instructions of a sample an answer follows, strictly and loosely, as IFEval has it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from services.results.scoring.instructions.checks import CHECKS, Check
from services.results.scoring.instructions.parameters import Parameters
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.timed_regex import SlowTime

NAMES, PARAMETERS = "instruction_id_list", "kwargs"
_FORM = f'a target is {{"{NAMES}": ["punctuation:no_comma", …], "{PARAMETERS}": [{{}}, …]}}'


@dataclass(frozen=True, slots=True)
class FollowedInstructions:
    """A metric of instructions. `is_loose`: of eight versions of the answer one that follows is enough."""

    is_loose: bool
    slow_time: SlowTime = field(default_factory=SlowTime, compare=False)

    def check(self, targets: Sequence[str]) -> None:
        """Raises ScoringImpossible for a target that no answer can be held against."""
        _checks(targets, self.slow_time)

    def followed(self, answer: str, targets: Sequence[str]) -> tuple[bool, ...]:
        """In the order of the target."""
        versions = list(dict.fromkeys(_versions(answer))) if self.is_loose else [answer]
        versions = [version for version in versions if version.strip()]
        return tuple(any(check(each) for each in versions) for check in _checks(targets, self.slow_time))


def _versions(answer: str) -> Iterator[str]:
    """Without its first line, its last one, or both, and each of them without stars: Zhou et al. 2023."""
    lines = answer.split("\n")
    for some in (lines, lines[1:], lines[:-1], lines[1:-1]):
        text = answer if some is lines else "\n".join(some).strip()
        yield text
        yield text.replace("*", "")


def _checks(targets: Sequence[str], slow_time: SlowTime) -> list[Check]:
    names, parameters = _read(targets)
    return [
        CHECKS[name](Parameters(name, given, slow_time))
        for name, given in zip(names, parameters, strict=True)
    ]


def _read(targets: Sequence[str]) -> tuple[list[str], list[Mapping[str, object]]]:
    try:
        [target] = targets
        found = json.loads(target)
        names, parameters = found[NAMES], found[PARAMETERS]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ScoringImpossible(f"the target names no instructions: {_FORM}") from error
    if not (isinstance(names, list) and names and isinstance(parameters, list)):
        raise ScoringImpossible(f"the target names no instructions: {_FORM}")
    if len(names) != len(parameters) or not all(isinstance(given, dict) for given in parameters):
        raise ScoringImpossible(f"the target needs {PARAMETERS} for each instruction: {_FORM}")
    if unknown := [name for name in names if not isinstance(name, str) or name not in CHECKS]:
        raise ScoringImpossible(f"there is no instruction {unknown[0]!r:.80}; IFEval has {', '.join(CHECKS)}")
    return names, parameters
