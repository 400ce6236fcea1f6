"""The series of a trend: which runs of checkpoints it is over, and in which order."""

from collections.abc import Mapping

from proctor.cli.runs.watch_models import Watched, series
from proctor.v1 import run_pb2

SUITE = "s"


def watched(
    *models: str, state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_COMPLETED
) -> Mapping[tuple[str, str], Watched]:
    return {
        (model, SUITE): Watched(model, SUITE, run_pb2.Run(run_id=f"run of {model}", state=state))
        for model in models
    }


def test_a_checkpoint_that_is_copied_late_has_its_place_by_its_step() -> None:
    found = watched("m/step-1000", "m/step-1100", "m/step-900")
    assert series(found, {"m/step-900", "m/step-1100", "m/step-1000"}, SUITE) == [
        "run of m/step-900",
        "run of m/step-1000",
        "run of m/step-1100",
    ]


def test_the_reference_is_in_it_where_it_is_a_checkpoint_and_else_not() -> None:
    found = watched("m/step-2", "m/step-1", "m/step-3")
    assert series(found, {"m/step-1", "m/step-2", "m/step-3"}, SUITE)[1] == "run of m/step-2"
    assert series(found, {"m/step-1", "m/step-3"}, SUITE) == ["run of m/step-1", "run of m/step-3"]


def test_only_completed_runs_of_the_suite_count() -> None:
    failed = watched("m/step-2", state=run_pb2.RUN_STATE_FAILED)
    found = {**watched("m/step-1"), **failed, ("m/step-3", SUITE): Watched("m/step-3", SUITE)}
    assert series(found, {"m/step-1", "m/step-2", "m/step-3"}, SUITE) == ["run of m/step-1"]
    assert series(found, {"m/step-1"}, "other") == []
