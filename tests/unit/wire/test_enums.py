"""Enums of the contracts as words, in both directions."""

import pytest

from proctor.v1 import run_pb2
from proctor.values.priority import Priority, priority_note
from proctor.wire.enums import value_of, word_of, words_of


def test_words_and_values_of_an_enum_agree() -> None:
    assert word_of(run_pb2.RunState, run_pb2.RUN_STATE_PAUSED) == "paused"
    assert words_of(run_pb2.Truncation) == ["none", "left"]
    assert [value_of(run_pb2.Truncation, word) for word in ("unspecified", "none", "left")] == [0, 1, 2]


def test_a_number_of_a_newer_version_is_its_own_word() -> None:
    assert word_of(run_pb2.RunState, 99) == "99"


def test_the_unset_word_is_the_unspecified_value() -> None:
    assert value_of(run_pb2.ScoringMethod, "auto", unset="auto") == run_pb2.SCORING_METHOD_UNSPECIFIED
    with pytest.raises(ValueError, match="SCORING_METHOD_AUTO"):
        value_of(run_pb2.ScoringMethod, "auto")


def test_only_a_priority_below_high_is_noted() -> None:
    notes = [priority_note(priority) for priority in (None, *Priority)]
    assert notes == ["", "", ", with priority normal", ", with priority low"]
