"""The sentence of a decision, also of ends close to none and of chances close to certain."""

from dataclasses import replace

import pytest

from proctor.v1 import run_pb2
from proctor.values.comparison import Decision, DecisionVerdict
from proctor.wire.decisions import decision_sentence
from proctor.wire.values import DECISION

BETTER = Decision(DecisionVerdict.BETTER, 0.031, 0.0003, 0.057, pairs=1408, failed=0, alpha=0.05)


def sentence_of(decision: Decision, *, is_base: bool = False) -> str:
    wanted = run_pb2.UntilDecided(against_model="b/old", is_base=is_base)
    order = run_pb2.RunOrder(model="a/new", until_decided=wanted)
    return decision_sentence(run_pb2.Run(order=order, decision=DECISION.to_proto(decision)))


def test_the_sentence_names_both_models_the_interval_and_its_chance() -> None:
    assert sentence_of(BETTER) == (
        "Stopped early after 1,408 pairs: a/new is better than b/old by 3.1 points. The interval of the "
        "difference, 0.03 to 5.7 points, holds with a chance of 0.95 whenever it is looked at."
    )
    assert "b/old is better than a/new" in sentence_of(BETTER, is_base=True)
    assert decision_sentence(run_pb2.Run()) == ""


def test_an_end_beside_0_is_not_shown_as_0() -> None:
    worse = replace(BETTER, verdict=DecisionVerdict.WORSE, difference=-0.02, low=-0.04, high=-0.0002)
    assert "worse than b/old by 2.0 points. The interval of the difference, -4.0 to -0.02 points" in (
        sentence_of(worse)
    )


@pytest.mark.parametrize(("alpha", "chance"), [(0.001, "0.999"), (0.00001, "1 - 1e-05"), (1e-9, "1 - 1e-09")])
def test_no_chance_is_certain(alpha: float, chance: str) -> None:
    assert f"holds with a chance of {chance} whenever" in sentence_of(replace(BETTER, alpha=alpha))
