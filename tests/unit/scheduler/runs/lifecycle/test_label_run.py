"""Names, tags and notes of runs: their rules, who may change them, and that they are no part of an order."""

from uuid import uuid4

import pytest

from proctor.values.names.run_labels import RunLabels, tags_in
from proctor.values.names.user import Caller, Role
from proctor.values.run import RunId
from services.common.errors import BelongsToAnother, DomainError, InvalidParameter, ProjectNotFound
from services.scheduler.runs.lifecycle.label_run import LabelRun
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.run_labels import LabelChange
from services.scheduler.runs.lifecycle.submit_run import Submission
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order

ANN = Caller("ann")
LABELS = RunLabels("nightly", ("ci", "prompt 2"), "before the change")


async def submit(harness: SchedulerHarness, labels: RunLabels, request_id: str = "") -> Run:
    submission = Submission(RunId(str(uuid4())), toy_order(), "ann", request_id, labels)
    return await harness.submitting.submit(submission)


async def changed(change: LabelChange) -> RunLabels:
    harness = SchedulerHarness()
    run = await submit(harness, LABELS)
    await LabelRun(harness.runs, harness.clock).label(run.run_id, change, ANN)
    return (await harness.runs.get(run.run_id)).labels


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        (LabelChange(), LABELS),
        (LabelChange(name=" weekly "), RunLabels("weekly", LABELS.tags, LABELS.note)),
        (LabelChange(name="", note=""), RunLabels(tags=LABELS.tags)),
        (LabelChange(note="a\r\nb\tc "), RunLabels("nightly", LABELS.tags, "a\nb\tc")),
        (LabelChange(tags=("new", "new ")), RunLabels("nightly", ("new",), LABELS.note)),
        (LabelChange(tags=()), RunLabels("nightly", (), LABELS.note)),
        (LabelChange(added_tags=("ci", "b")), RunLabels("nightly", ("ci", "prompt 2", "b"), LABELS.note)),
        (LabelChange(removed_tags=("ci", "none")), RunLabels("nightly", ("prompt 2",), LABELS.note)),
    ],
)
async def test_what_is_not_given_stays(change: LabelChange, labels: RunLabels) -> None:
    assert await changed(change) == labels


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (LabelChange(name="x" * 121), "name"),
        (LabelChange(name="two\nlines"), "name"),
        (LabelChange(name="turned\u202eback"), "name"),
        (LabelChange(tags=("x" * 51,)), "tags"),
        (LabelChange(tags=(" ",)), "tags"),
        (LabelChange(added_tags=("a,b",)), "tags"),
        (LabelChange(added_tags=tuple(map(str, range(19)))), "tags"),
        (LabelChange(note="x" * 2001), "note"),
        (LabelChange(note="nul\0"), "note"),
    ],
)
async def test_labels_against_the_rules_are_refused(change: LabelChange, field: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        await changed(change)
    assert caught.value.facts["field"] == field


async def test_order_with_such_labels_is_refused_at_its_field() -> None:
    with pytest.raises(InvalidParameter) as caught:
        await submit(SchedulerHarness(), RunLabels("x" * 121))
    assert caught.value.facts["field"] == "labels.name"


@pytest.mark.parametrize(
    ("caller", "refusal"),
    [(Caller("bob"), BelongsToAnother), (Caller("ann", Role.VIEWER), ProjectNotFound)],
)
async def test_who_may_not_cancel_a_run_may_not_label_it(caller: Caller, refusal: type[DomainError]) -> None:
    harness = SchedulerHarness()
    run = await submit(harness, LABELS)
    with pytest.raises(refusal):
        await LabelRun(harness.runs, harness.clock).label(run.run_id, LabelChange(name="x"), caller)
    await LabelRun(harness.runs, harness.clock).label(
        run.run_id, LabelChange(name="x"), Caller("bob", Role.MAINTAINER)
    )
    assert (await harness.runs.get(run.run_id)).labels.name == "x"


async def test_repeated_call_with_other_labels_finds_the_first_run() -> None:
    harness, request_id = SchedulerHarness(), str(uuid4())
    first = await submit(harness, LABELS, request_id)
    again = await submit(harness, RunLabels("other"), request_id)
    assert (again.run_id, again.labels) == (first.run_id, LABELS)


def test_tags_of_a_text_are_separated_by_commas() -> None:
    assert tags_in(" a, b c,,a , ") == ["a", "b c"]
