"""`proctor watch-models`: each model or checkpoint that appears becomes a run of each suite, and is gated."""

import asyncio
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from proctor.cli.gateway import Session
from proctor.cli.options import PROJECT_METAVAR, PROJECT_VARIABLE, points, read_project
from proctor.cli.render.table import Cell, Column, table
from proctor.cli.render.terminal import say
from proctor.cli.render.words import JsonValue, state_word
from proctor.cli.runs.checkpoints import find_checkpoints, model_of, natural
from proctor.cli.runs.trend import MAX_RUNS, MIN_RUNS, Trend, read_trend
from proctor.cli.runs.trend_output import print_trend, trend_document
from proctor.client.errors import ClientError, Refused, Unreachable
from proctor.exit_codes import ExitCode
from proctor.v1 import comparison_pb2, comparison_service_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.wire.enums import word_of

# Ids of requests follow from it, so that a watch that is started again orders nothing twice.
_NAMESPACE = uuid.UUID("6a1c52a4-0f3f-5b0e-9d0e-6d6f64656c73")
_FINAL = frozenset({run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED})


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Which models are watched, and what is ordered of each."""

    suite: Annotated[list[str], typer.Option(help="A suite that each model runs; repeat for several.")]
    name: Annotated[
        str, typer.Option(help="Name of the watch: of its runs, and what tells it from another one.")
    ]
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN",
            help='Models, such as "openai/gpt-*", or names of checkpoints; default: all.',
        ),
    ] = None
    against: Annotated[
        str, typer.Option(metavar="MODEL", help="The reference, which is run as the others are.")
    ] = ""
    margin: Annotated[
        str, typer.Option(metavar="POINTS", help="Accepted drop, such as 1pt: a hundredth of a share.")
    ] = "0pt"
    limit: Annotated[int | None, typer.Option(min=1, help="First N rows of each task.")] = None
    max_cost: Annotated[float | None, typer.Option(help="A run fails when its tokens cost this much.")] = None
    project: Annotated[
        int, typer.Option(envvar=PROJECT_VARIABLE, parser=read_project, metavar=PROJECT_METAVAR)
    ] = 0
    checkpoints: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|URL",
            help="Watch checkpoints in a folder or bucket, such as s3://bucket/runs/a, not the lists.",
        ),
    ] = ""
    model_form: Annotated[
        str,
        typer.Option(
            metavar="FORM", help="The model of a checkpoint: its pool and {path} or {name}, as ours/{path}."
        ),
    ] = ""
    every: Annotated[
        float, typer.Option(min=0, metavar="MINUTES", help="Look again so often; 0: once, as for cron.")
    ] = 0.0


@dataclass(slots=True)
class Watched:
    """A model over a suite. `verdict` is set once its run and that of the reference are compared."""

    model: str
    suite: str
    run: run_pb2.Run | None = None
    problem: str = ""
    verdict: comparison_pb2.GateVerdict.ValueType = comparison_pb2.GATE_VERDICT_UNSPECIFIED

    @property
    def is_complete(self) -> bool:
        return self.run is not None and self.run.state == run_pb2.RUN_STATE_COMPLETED

    @property
    def has_failed(self) -> bool:
        """Its gate, or its run."""
        is_gone = self.run is not None and self.run.state == run_pb2.RUN_STATE_FAILED
        return is_gone or self.verdict == comparison_pb2.GATE_VERDICT_FAIL

    @property
    def shown(self) -> str:
        """The verdict, else why nothing was ordered or compared, else the state."""
        if self.verdict:
            return word_of(comparison_pb2.GateVerdict, self.verdict)
        return self.problem or (state_word(self.run.state) if self.run else "")


@dataclass(slots=True)
class _Watch:
    session: Session
    options: WatchOptions
    found: dict[tuple[str, str], Watched] = field(default_factory=dict)
    # Models of checkpoints that have appeared, those that are gone too; the reference if it is one.
    checkpoints: set[str] = field(default_factory=set)
    # By suite, over its checkpoints in order.
    trends: dict[str, Trend] = field(default_factory=dict)

    async def look(self) -> Sequence[Watched]:
        """Orders what is new, reads what goes on, compares what has ended; returns what has changed."""
        changed = []
        for model in await self._models():
            for suite in self.options.suite:
                one = self.found.setdefault((model, suite), Watched(model, suite))
                before = one.shown
                await self._go_on(one)
                if one.shown != before:
                    changed.append(one)
        for one in self.found.values():
            before = one.shown
            await self._compare(one)
            if one.shown != before and one not in changed:
                changed.append(one)
        return changed

    async def read_trends(self) -> Sequence[str]:
        """Reads the trend of each suite whose completed runs have changed; returns the names of these."""
        read = []
        for suite in self.options.suite:
            run_ids = series(self.found, self.checkpoints, suite)
            known = self.trends.get(suite)
            if len(run_ids) < MIN_RUNS or (known and known.run_ids == run_ids):
                continue
            try:
                self.trends[suite] = await read_trend(self.session.client, run_ids)
                read.append(suite)
            except Unreachable:
                raise
            except ClientError as error:
                say(self.session.terminal.progress, f"No trend of {suite}: {error.message}", style="yellow")
        return read

    @property
    def models_of_runs(self) -> Mapping[str, str]:
        return {one.run.run_id: one.model for one in self.found.values() if one.run}

    async def _models(self) -> Sequence[str]:
        """The reference first, then in the order in which they appeared; those that are gone stay watched."""
        known = [model for model, _ in self.found]
        models = dict.fromkeys([self.options.against, *known, *await self._appeared()])
        return [model for model in models if model]

    async def _appeared(self) -> Sequence[str]:
        """Checkpoints by their steps, models by name."""
        patterns = self.options.patterns or ["*"]
        if self.options.checkpoints:
            now = datetime.fromtimestamp(time.time(), UTC)
            found = await asyncio.to_thread(find_checkpoints, self.options.checkpoints, now)
            chosen = [one for one in found if any(fnmatchcase(one.name, pattern) for pattern in patterns)]
            models = [model_of(one, self.options.model_form) for one in chosen]
            self.checkpoints.update(models)
            return models
        listed = await self.session.client.runs.ListModels(scheduler_pb2.ListModelsRequest())
        names = {each.model for each in listed.models}
        return sorted(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))

    async def _go_on(self, one: Watched) -> None:
        if one.run and one.run.state in _FINAL:
            return
        client, base = self.session.client, self._base_of(one)
        if base and not base.run:
            # Its order names the run of the reference.
            one.problem = f"waits for the reference, {base.model}: {base.problem}"
            return
        try:
            if one.run:
                one.run = await client.run(one.run.run_id)
            else:
                one.run = await self._ordered(one)
                one.problem = ""
        except Unreachable:
            raise
        except ClientError as error:
            # Such as a full queue, or a suite that the model cannot run: it is tried again.
            one.problem = error.message

    async def _ordered(self, one: Watched) -> run_pb2.Run:
        """The run of a new order, or of an earlier one that had another `--max-cost`."""
        client = self.session.client
        try:
            return (await client.runs.SubmitRun(self._request(one))).run
        except Refused as refused:
            if refused.reason != "REQUEST_ID_TAKEN" or "run_id" not in refused.facts:
                raise
            return await client.run(refused.facts["run_id"])

    def _base_of(self, one: Watched) -> Watched | None:
        """The reference over its suite; None without one, and of the reference itself."""
        base = self.found.get((self.options.against, one.suite))
        return None if base is one else base

    def _request(self, one: Watched) -> scheduler_pb2.SubmitRunRequest:
        options = self.options
        order = run_pb2.RunOrder(
            suite=one.suite,
            model=one.model,
            limit=options.limit,
            max_cost=options.max_cost,
            project_id=options.project,
            priority=run_pb2.PRIORITY_LOW,
        )
        # An order of other rows is another one.
        words = (options.name, str(options.project), one.model, one.suite, str(options.limit or 0))
        return scheduler_pb2.SubmitRunRequest(
            order=order,
            request_id=str(uuid.uuid5(_NAMESPACE, "\n".join(words))),
            labels=run_pb2.RunLabels(name=options.name, tags=["watch"]),
            gate=self._gate(one),
        )

    def _gate(self, one: Watched) -> run_pb2.RunGate | None:
        """As `_compare` decides it: the scheduler tells users of a drop by notices."""
        base = self._base_of(one)
        if base is None or base.run is None:
            return None
        margin = points("--margin", self.options.margin)
        return run_pb2.RunGate(base_run_id=base.run.run_id, margin_points=margin)

    async def _compare(self, one: Watched) -> None:
        base = self._base_of(one)
        if base is None or one.verdict or not (one.is_complete and base.is_complete):
            return
        assert one.run is not None
        assert base.run is not None
        request = comparison_service_pb2.GateRunRequest(
            run_id=one.run.run_id,
            base_run_id=base.run.run_id,
            margin_points=points("--margin", self.options.margin),
        )
        try:
            one.verdict = (await self.session.client.comparisons.GateRun(request)).gate.verdict
            one.problem = ""
        except Unreachable:
            raise
        except ClientError as error:
            # Such as runs under other conditions: it must not end the watch of the others.
            one.problem = error.message


def series(
    found: Mapping[tuple[str, str], Watched], checkpoints: Collection[str], suite: str
) -> Sequence[str]:
    """Ids of the completed runs of checkpoints over a suite, the latest ones, in the order of their steps.

    A checkpoint that is copied late has its place by its step, not by when it appeared.
    """
    ordered = sorted(checkpoints, key=natural)
    of_suite = [found[model, suite] for model in ordered if (model, suite) in found]
    return [each.run.run_id for each in of_suite if each.run and each.is_complete][-MAX_RUNS:]


async def watch_models(session: Session, options: WatchOptions) -> ExitCode:
    """Run suites with each model that appears in the lists of pools and providers, and gate it.

    Exits with 1 where a model is worse than the reference by more than the margin, or its run has failed.
    """
    if not options.name.strip():
        raise Refused("Name the watch: --name. Its runs have the same name.")
    _check(options)
    watch = _Watch(session, options)
    await _look(watch)
    while options.every:
        await asyncio.sleep(60 * options.every)
        try:
            await _look(watch)
        except ClientError as error:
            # A gateway that is upgraded, or a bucket that is away: the watch outlives both.
            say(session.terminal.progress, f"Not looked; tried again: {error.message}", style="yellow")
    if session.terminal.is_json:
        watched: list[JsonValue] = [_document(one) for one in watch.found.values()]
        trends: list[JsonValue] = [
            trend_document(suite, trend, watch.models_of_runs) for suite, trend in watch.trends.items()
        ]
        session.terminal.emit({"watched": watched, "trends": trends})
    return ExitCode.FAILED if any(one.has_failed for one in watch.found.values()) else ExitCode.OK


async def _look(watch: _Watch) -> None:
    """Shows what has changed."""
    _show(watch.session, await watch.look())
    if watch.options.checkpoints:
        for suite in await watch.read_trends():
            progress = watch.session.terminal.progress
            print_trend(progress, suite, watch.trends[suite], watch.models_of_runs)


def _check(options: WatchOptions) -> None:
    """Raises Refused."""
    points("--margin", options.margin)
    if options.model_form and not options.checkpoints:
        raise Refused("--model-form is for --checkpoints only: add that, or leave it out.")
    if options.checkpoints and not any(part in options.model_form for part in ("{path}", "{name}")):
        example = "such as --model-form ours/{path}"
        raise Refused(f"Say by which model a pool serves a checkpoint, with {{path}} or {{name}}: {example}.")


def _show(session: Session, changed: Sequence[Watched]) -> None:
    if not changed:
        return
    console = session.terminal.progress
    columns = (Column("model"), Column("suite"), Column("run", "whole"), Column("state or verdict"))
    console.print(table(console, columns, _rows(changed)))
    for one in changed:
        if one.verdict == comparison_pb2.GATE_VERDICT_FAIL:
            say(console, f"{one.model} is worse than the reference on {one.suite}.", style="red")


def _rows(changed: Sequence[Watched]) -> Iterator[Sequence[Cell]]:
    for one in changed:
        yield one.model, one.suite, one.run.run_id if one.run else "", one.shown


def _document(one: Watched) -> dict[str, JsonValue]:
    return {
        "model": one.model,
        "suite": one.suite,
        "run_id": one.run.run_id if one.run else None,
        "state": state_word(one.run.state) if one.run else None,
        "verdict": word_of(comparison_pb2.GateVerdict, one.verdict) if one.verdict else None,
        "problem": one.problem,
    }
