"""Rows with the answers of several runs, and how rows of two sample sets are paired."""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import orjson

from services.results.outcomes.outcome import ListedOutcome
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.samples.sample import StoredSample

# Rows of a sample that a set has more often are paired by their positions alone. So the time of a page does
# not grow with the number of these rows.
MAX_SAME = 256


@dataclass(frozen=True, slots=True)
class Side:
    """A run, and the task of it that is looked at."""

    plan: RunPlan
    task_index: int

    @property
    def task(self) -> PlannedTask:
        return self.plan.tasks[self.task_index]

    def sample(self, position: int) -> int:
        """Its number in the run."""
        return self.task.first_sample + position


@dataclass(frozen=True, slots=True)
class PairedRow:
    """`positions`: of the same sample in the set of each run, the first one first; None where it has none."""

    positions: Sequence[int | None]
    is_differing: bool

    @property
    def first(self) -> int:
        assert self.positions[0] is not None
        return self.positions[0]


@dataclass(frozen=True, slots=True)
class ShownRow:
    """`answers`: one per run, None where it has no outcome."""

    task: PlannedTask
    sample: StoredSample
    answers: Sequence[ListedOutcome | None]
    is_differing: bool


def differ(digests: Sequence[str | None]) -> bool:
    """Failed and missing answers do not count as differing."""
    return len({digest for digest in digests if digest is not None}) > 1


@dataclass(frozen=True, slots=True)
class PositionedSample:
    """A sample in its set. `name`: the id of its row, else the row's number in its split."""

    position: int
    digest: bytes
    name: str


@dataclass(frozen=True, slots=True)
class SamePosition:
    """A sample of the first set; whether the other has it at the same position, and as the same row."""

    digest: bytes
    is_same_sample: bool
    is_same_row: bool


def crowded_digests(*sets: Sequence[PositionedSample]) -> Set[bytes]:
    """Samples that some of the sets have too often."""
    counts = [Counter(one.digest for one in of_set) for of_set in sets]
    return {digest for counted in counts for digest, count in counted.items() if count > MAX_SAME}


def pair_samples(first: Sequence[PositionedSample], other: Sequence[PositionedSample]) -> Mapping[int, int]:
    """Positions by position in the first set: that in the other: of the samples of some digests, all of
    both sets.

    Rows of the same name at the same position are paired first, then those of the same name, then the rest
    in order; so each has one partner at most, whatever part of a set is looked at.
    """
    there = {(one.position, one.digest, one.name) for one in other}
    pairs = {one.position: one.position for one in first if (one.position, one.digest, one.name) in there}
    taken = set(pairs.values())
    for is_by_name in (True, False):
        waiting: dict[tuple[bytes, str], deque[int]] = defaultdict(deque)
        for one in other:
            if one.position not in taken:
                waiting[one.digest, one.name if is_by_name else ""].append(one.position)
        for one in first:
            left = waiting.get((one.digest, one.name if is_by_name else ""))
            if one.position not in pairs and left:
                pairs[one.position] = left.popleft()
                taken.add(pairs[one.position])
    return pairs


def tool_calls(body_json: str) -> list[Any]:
    """Empty where the body is not an answer of the OpenAI protocol."""
    try:
        calls = orjson.loads(body_json)["choices"][0]["message"]["tool_calls"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return []
    return calls if isinstance(calls, list) else []


def called(body_json: str) -> str:
    """Called functions with their arguments, without ids: these differ each time."""
    functions = [call.get("function") for call in tool_calls(body_json) if isinstance(call, dict)]
    return orjson.dumps(functions, option=orjson.OPT_SORT_KEYS).decode() if functions else ""
