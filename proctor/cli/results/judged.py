"""The judges of a run below its figures: each as it is and corrected by marks, several as a panel."""

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from proctor.cli.render.words import JsonValue, counted, document, state_word
from proctor.client.errors import ClientError, Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.judging.panels import asked_of_panels
from proctor.wire.comparison_notes import compares

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """A judging run. `figure`: None while it has no verdict, of pairs, and where its answers are archived."""

    run: run_pb2.Run
    figure: answer_pb2.CalibratedFigure | None

    @property
    def question(self) -> str:
        return f"{self.run.order.judge.prompt}, {self.run.order.judge.scale}"


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """`panels`: one for each question that several models have answered."""

    judges: Sequence[JudgedBy] = ()
    panels: Sequence[annotation_pb2.GetPanelResponse] = ()

    def facts(self) -> Iterator[tuple[str, str]]:
        """Lines, each with its name."""
        for judge in self.judges:
            yield "Judged by", f"{judge.run.order.model} ({judge.question}): {_said(judge)}"
        for panel in self.panels:
            yield "Panel", _panel_words(panel)

    def document(self) -> dict[str, JsonValue]:
        """For scripts; empty for a run without judges."""
        if not self.judges:
            return {}
        judges: list[JsonValue] = [
            {
                "run_id": judge.run.run_id,
                "model": judge.run.order.model,
                "prompt": judge.run.order.judge.prompt,
                "scale": judge.run.order.judge.scale,
                "state": state_word(judge.run.state),
                "calibrated": document(judge.figure) if judge.figure else None,
            }
            for judge in self.judges
        ]
        return {"judges": judges, "panels": [document(panel) for panel in self.panels]}


async def judged_run(client: ProctorClient, run: run_pb2.Run) -> JudgedRun:
    """The newest judges of a run; of a judging run itself."""
    is_judge = bool(run.order.judge.run_id)
    judging = [run] if is_judge else await judging_runs(client, run.run_id)
    # One at a time: each reads all verdicts of its run.
    judges = [JudgedBy(one, await _figure(client, one)) for one in judging]
    asked = asked_of_panels(
        (judge.question, judge.run.order.model, judge.run.run_id)
        for judge in judges
        if judge.figure and judge.run.state == run_pb2.RUN_STATE_COMPLETED
    )
    panels = [
        await _unless_refused(client.annotations.GetPanel(annotation_pb2.GetPanelRequest(run_id=run_id)))
        for run_id in asked
    ]
    return JudgedRun(judges, [panel for panel in panels if panel])


async def judging_runs(client: ProctorClient, run_id: str) -> Sequence[run_pb2.Run]:
    """Judging runs of a run, newest first: the judged run is their benchmark."""
    found = await client.runs.ListRuns(scheduler_pb2.ListRunsRequest(benchmark=run_id, page_size=50))
    return [run for run in found.runs if run.order.judge.run_id == run_id]


async def _figure(client: ProctorClient, run: run_pb2.Run) -> answer_pb2.CalibratedFigure | None:
    if compares(run.order.judge):
        return None
    request = answer_pb2.CalibrateJudgeRequest(run_id=run.run_id)
    found = await _unless_refused(client.answers.CalibrateJudge(request))
    return found.figure if found and found.figure.samples else None


async def _unless_refused(call: Awaitable[T]) -> T | None:
    """None where it is refused, as for archived runs: the figures of the run stand without."""
    try:
        return await call
    except Unreachable:
        raise
    except ClientError:
        return None


def _said(judge: JudgedBy) -> str:
    figure, where = judge.figure, f"run {judge.run.run_id}"
    if figure is None:
        return f"{state_word(judge.run.state)}, {where}"
    raw = f"{figure.raw:.4f} as it is" if figure.HasField("raw") else "no figure"
    if not figure.HasField("mean"):
        return f"{raw}, {where}. {figure.advice}"
    ends = f" (95 % from {figure.ci_low:.4f} to {figure.ci_high:.4f})" if figure.HasField("ci_low") else ""
    marks = counted(figure.marks, "mark")
    return f"{raw}, {figure.mean:.4f}{ends} corrected by {marks}, {where}. {figure.advice}"


def _panel_words(panel: annotation_pb2.GetPanelResponse) -> str:
    ends = f" (95 % from {panel.ci_low:.4f} to {panel.ci_high:.4f})" if panel.HasField("ci_low") else ""
    mean = f"{panel.mean:.4f}{ends}" if panel.HasField("mean") else "no figure"
    alpha = f", Krippendorff's alpha {panel.alpha:.2f}" if panel.HasField("alpha") else ""
    return f"{counted(len(panel.judges), 'judge')} on {panel.question.name}: {mean}{alpha}"
