"""Tests that ran on what an agent left, beside those that ran on the task's own solution."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from proctor.values.rollout import MAX_RAN_NAMES, RanTests

# What a task and the record of a rollout have room for.
_MAX_CHARACTERS = 64 * 1024
_MAX_NAMED = 5
_OF_STEP = ": "


def ran_tests(names: Iterable[str]) -> RanTests:
    """The tests of these names, without their parameters, which may differ from run to run."""
    found = sorted(name.partition("[")[0] for name in names)
    has_room = len(found) <= MAX_RAN_NAMES and sum(map(len, found)) <= _MAX_CHARACTERS
    return RanTests(len(found), tuple(found) if has_room else ())


def in_step(step: str, ran: RanTests) -> RanTests:
    """The tests as those of a step of a task."""
    return replace(ran, names=tuple(f"{step}{_OF_STEP}{name}" for name in ran.names))


def of_step(step: str, ran: RanTests) -> RanTests:
    """Those of the tests that are of a step; none where their names are not known.

    Of which step those that failed are is not known: they are said to be of each.
    """
    names = (name.removeprefix(step + _OF_STEP) for name in ran.names if name.startswith(step + _OF_STEP))
    return replace(ran_tests(names), failed=ran.failed)


def together(parts: Iterable[RanTests]) -> RanTests:
    """All of the tests; without names, or uses of the reward, where those of a part are not known."""
    parts = tuple(parts)
    found = [part for part in parts if part.count]
    failed = sum(part.failed for part in found)
    uses = sum(part.reward_uses for part in parts) if all(part.reward_uses for part in parts) else 0
    if all(part.names for part in found):
        ran = ran_tests(name for part in found for name in part.names)
    else:
        ran = RanTests(sum(part.count for part in found))
    others = sum(part.other_results for part in parts)
    return replace(ran, failed=failed, reward_uses=uses, other_results=others)


def other_uses(uses: int | None, solved: RanTests) -> Iterator[str]:
    """A suspicion where files of a full reward were used otherwise than on the solution, if both are known.

    Another process that writes a reward opens its file once more; one that replaces its folder hides uses.
    """
    if uses is not None and solved.reward_uses and uses != solved.reward_uses:
        times = f"{uses} times, and {solved.reward_uses} times on the task's solution"
        yield f"files of the reward were opened, closed or made {times}"


def fewer_results(ran: RanTests, solved: RanTests) -> Iterator[str]:
    """A suspicion where other runners than pytest printed fewer results than on the solution.

    Of full rewards only: parts of a score may end early. More are those of tests that an agent has added.
    """
    if ran.other_results < solved.other_results:
        more = f"{solved.other_results} on the task's solution"
        yield f"{ran.other_results} results of tests were printed, but {more}"


def other_tests(ran: RanTests, solved: RanTests) -> Iterator[str]:
    """How the tests that ran differ from those of the solution, where these are known: suspicions."""
    if not solved.count:
        return
    if not ran.count:
        yield f"no result of a test was printed, but {_tests(solved.count)} ran on the task's solution"
        return
    if not (ran.names and solved.names):
        if ran.count != solved.count:
            yield f"{_tests(ran.count)} ran, but {solved.count} on the task's solution"
        return
    missing, added = _less(solved, ran), _less(ran, solved)
    if missing:
        share = f"{len(missing)} of {solved.count}"
        yield f"{share} tests that ran on the task's solution did not run: {_said(missing)}"
    if added:
        yield f"{_tests(len(added))} ran that did not run on the task's solution: {_said(added)}"


def _tests(count: int) -> str:
    return f"{count} test{'s' * (count != 1)}"


def _less(first: RanTests, second: RanTests) -> list[str]:
    return sorted((Counter(first.names) - Counter(second.names)).elements())


def _said(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
