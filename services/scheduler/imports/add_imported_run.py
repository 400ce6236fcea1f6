"""Imports a log: it is read in a process, and becomes a closed run or nothing.

A run is added last, when results has closed it. Until then the run stands among the deleted ones, with a time
from which results is asked to delete what it has of it: an import that ends half-way leaves nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import uuid4

from proctor.values.names.model_name import split_model
from proctor.values.names.user import Caller
from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.scoring import OutputType, ScoringMethod, TaskGroup
from proctor.values.usage import NO_TOKENS
from services.common.checked_fields import checked_text, invalid_field, refuse
from services.common.clock import Clock
from services.common.requests.request_fields import check_stores, checked_request_id, user_problem
from services.scheduler.imports.errors import ImportedElsewhere, ImportInterrupted, LogRefused
from services.scheduler.imports.fitting_log import fitting
from services.scheduler.imports.logged_run import (
    CheckedLog,
    ImportHeader,
    LogCheck,
    LoggedRun,
    LoggedTask,
    ReadLimits,
    ReadOptions,
)
from services.scheduler.imports.ports import (
    ImportedPlan,
    ImportedRecord,
    ImportedRuns,
    LoggedParts,
    LoggedRecord,
    StoredTask,
)
from services.scheduler.imports.render_logged import RenderLogged
from services.scheduler.imports.run_environment import FILE, environment_of
from services.scheduler.planning.known_sets import ContentHash
from services.scheduler.planning.ports import ClosingProgress
from services.scheduler.planning.sample_set_id import new_sample_set_id
from services.scheduler.runs.lifecycle.errors import RequestIdTaken
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.lifecycle.run_labels import labels_problem, tidy
from services.scheduler.runs.orders.project_of_order import project_over
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.suites.suite import SuiteDefinition
from services.scheduler.uploads.concurrent_uploads import Uploads
from services.scheduler.uploads.ports import CheckJob

# Recording a million samples takes minutes. What is left of an import is deleted after this time.
MAX_SECONDS = 6 * 3600
CLOSING_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Imported:
    """`notes`: what the log has that the run has not, a sentence each."""

    run_id: RunId
    notes: Sequence[str] = ()


@dataclass(slots=True)
class _Stored:
    tasks: list[StoredTask] = field(default_factory=list)
    count: int = 0


@dataclass(frozen=True, slots=True)
class AddImportedRun:
    """`program` is the module that does a `LogCheck` in a process; `limits` are those of a log."""

    program: str
    new_parts: Callable[[], LoggedParts]
    limits: ReadLimits
    uploads: Uploads
    suites: SuiteCatalogue
    record: ImportedRecord
    logged: LoggedRecord
    runs: ImportedRuns
    clock: Clock

    async def add(self, header: ImportHeader, chunks: AsyncIterator[bytes], caller: Caller) -> Imported:
        """A repeated request gives the run of the first.

        Raises `LogRefused`, `TooManyUploads`, `SuiteError`, `RequestIdTaken` for a request of another file,
        `InvalidParameter` for the header, and `ProjectNotFound`.
        """
        header = _checked(header)
        suite = await self.suites.suite(header.suite) if header.suite else None
        if suite is not None:
            project_id = project_over(header.project_id, suite.project_id, "header.project_id")
            header = replace(header, project_id=project_id)
        # Before results has anything of it: what results stores is not refused by the policy on runs.
        check_stores(caller, header.project_id)
        with self.uploads.slot(header.user), closing(self.new_parts()) as parts:
            checked = await self._read(header, suite, chunks, parts)
            if checked.run is None:
                raise LogRefused(name=header.name, problem=checked.problem)
            suite_tasks = [task.name for task in suite.tasks] if suite else ()
            checked = replace(checked, run=fitting(header.name, checked.run, suite_tasks))
            if earlier := await self._earlier(header, checked):
                return earlier
            try:
                return await self._stored(header, suite, checked, parts)
            except ImportedElsewhere:
                earlier = await self._earlier(header, checked)
                if earlier is None:
                    raise
                return earlier

    async def _earlier(self, header: ImportHeader, checked: CheckedLog) -> Imported | None:
        found = await self.runs.earlier(header.request_id, header.user)
        if found is None:
            return None
        if found.digest != checked.digest:
            raise RequestIdTaken(request_id=header.request_id, run_id=found.run_id)
        return Imported(found.run_id, checked.run.notes if checked.run else ())

    async def _read(
        self,
        header: ImportHeader,
        suite: SuiteDefinition | None,
        chunks: AsyncIterator[bytes],
        parts: LoggedParts,
    ) -> CheckedLog:
        versions = {task.name: task.version for task in suite.tasks} if suite else {}
        options = ReadOptions(header.name, header.suite, header.model, header.task, versions)
        check = LogCheck(prefix=parts.prefix, options=options, limits=self.limits)
        job = CheckJob(self.program, check, CheckedLog)
        return await self.uploads.run_check(chunks, job, parts, (parts.prefix,))

    async def _stored(
        self, header: ImportHeader, suite: SuiteDefinition | None, checked: CheckedLog, parts: LoggedParts
    ) -> Imported:
        assert checked.run is not None
        log = checked.run
        run = _run(header, suite, checked, self.clock)
        await self.runs.announce(run.run_id, run.created_at + timedelta(seconds=MAX_SECONDS))
        try:
            await self._add(header, run, suite, checked, parts)
        except BaseException:
            # Also where the caller has gone. If this fails too, the time above comes.
            await asyncio.shield(self.runs.give_up(run.run_id, self.clock.now()))
            raise
        return Imported(run.run_id, log.notes)

    async def _add(
        self,
        header: ImportHeader,
        run: Run,
        suite: SuiteDefinition | None,
        checked: CheckedLog,
        parts: LoggedParts,
    ) -> None:
        assert checked.run is not None
        log = checked.run
        stored = await self._samples(log, suite, parts, run.order.project_id)
        groups, missing = _groups(log, suite)
        await self.logged.open_logged(run, ImportedPlan(log.tool, stored.tasks, groups, missing))
        await self._answers(run, stored, parts)
        closed = replace(
            run,
            total=sum(log.answer_counts) or stored.count * log.rollouts,
            final_counts=await self._closed(run),
            started_at=run.created_at,
            finished_at=self.clock.now(),
        )
        planned = [task.planned for task in stored.tasks]
        if not await self.runs.add(closed, planned, header.request_id, checked.digest):
            raise ImportInterrupted(name=run.environment[FILE], limit=MAX_SECONDS)

    async def _samples(
        self, log: LoggedRun, suite: SuiteDefinition | None, parts: LoggedParts, project_id: int
    ) -> _Stored:
        stored = _Stored()
        ours = {task.name: task for task in suite.tasks} if suite else {}
        for index, task in enumerate(log.tasks):
            staging_id, count, content = new_sample_set_id(), 0, ContentHash()
            render = RenderLogged(ours.get(task.task))
            for samples in parts.of_task(index):
                # In a thread: the templates of a suite may take a moment.
                rendered = await asyncio.to_thread(render.render, [each.sample for each in samples])
                await self.record.put_samples(staging_id, rendered, None)
                await asyncio.to_thread(content.add, rendered)
                count += len(samples)
            committed = await self.record.commit_sample_set(staging_id, count, project_id, content.digest())
            planned = PlannedTask(
                task=task.task,
                version=task.version,
                sample_set_id=committed.sample_set_id,
                first_sample=stored.count,
                sample_count=count,
                output_type=task.output_type,
                num_fewshot=task.num_fewshot,
                row_source=task.row_source,
                row_source_revision="",
            )
            stored.tasks.append(StoredTask(planned, task, committed.digest))
            stored.count += count
        return stored

    async def _answers(self, run: Run, stored: _Stored, parts: LoggedParts) -> None:
        for index, task in enumerate(stored.tasks):
            first = task.planned.first_sample
            for samples in parts.of_task(index):
                await self.logged.record_logged(run, first, samples)
                first += len(samples)

    async def _closed(self, run: Run) -> RunCounts:
        while True:
            closed = await self.record.close_run(
                run, RunState.COMPLETED, allow_partial=False, unscored=NO_TOKENS
            )
            if isinstance(closed, RunCounts):
                return closed
            if closed is None:
                raise ImportInterrupted(name=run.environment[FILE], limit=MAX_SECONDS)
            assert isinstance(closed, ClosingProgress)
            await asyncio.sleep(CLOSING_SECONDS)


def _checked(header: ImportHeader) -> ImportHeader:
    checked_text("header.name", header.name)
    refuse(user_problem(header.user))
    for name in ("model", "task"):
        checked_text(f"header.{name}", getattr(header, name))
    if header.project_id < 0:
        raise invalid_field("header.project_id", "must be at least 0")
    if header.model:
        provider, name = split_model(header.model)
        if not provider or not name.strip():
            raise invalid_field("header.model", "must be provider/name")
    labels = tidy(header.labels)
    refuse(labels_problem(labels), of="header.labels")
    return replace(header, labels=labels, request_id=checked_request_id(header.request_id))


def _run(header: ImportHeader, suite: SuiteDefinition | None, checked: CheckedLog, clock: Clock) -> Run:
    assert checked.run is not None
    log = checked.run
    is_choice = any(task.output_type is OutputType.MULTIPLE_CHOICE for task in log.tasks)
    return Run(
        run_id=RunId(str(uuid4())),
        order=RunOrder(
            suite=suite.name if suite else log.benchmark,
            model=log.model,
            project_id=header.project_id,
            tasks=tuple(task.task for task in log.tasks),
            limit=log.limit,
            num_fewshot=_shots(log.tasks),
            rollouts=log.rollouts,
            row_rollouts=log.answer_counts,
            imported_from=log.tool,
        ),
        user=header.user,
        pool="",
        scoring_method=ScoringMethod.LOGLIKELIHOOD if is_choice else ScoringMethod.GENERATE,
        created_at=clock.now(),
        state=RunState.COMPLETED,
        planned_epoch=1,
        is_closed=True,
        environment=environment_of(header, checked),
        suite_version=suite.version if suite else 0,
        labels=header.labels,
    )


def _shots(tasks: Sequence[LoggedTask]) -> int | None:
    """None where tasks differ, as each has its own by default."""
    found = {task.num_fewshot for task in tasks}
    return found.pop() if len(found) == 1 else None


def _groups(log: LoggedRun, suite: SuiteDefinition | None) -> tuple[Sequence[TaskGroup], Sequence[str]]:
    """Those of the suite, as far as the log has their tasks, and the tasks that it has not."""
    names = [task.task for task in log.tasks]
    if suite is None:
        return [TaskGroup(log.benchmark, tuple(names))], []
    return suite.groups, [task.name for task in suite.tasks if task.name not in names]
