"""An order becomes a run: checked against suites or data sets, pools and limits, then stored as pending."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from proctor.values.judging.named_judge import NamedJudge
from proctor.values.names.model_name import split_model
from proctor.values.names.run_labels import RunLabels
from proctor.values.names.suite_name import base_name
from proctor.values.plain import to_plain
from proctor.values.providers.base_urls import BaseUrl
from proctor.values.providers.pool import Pool, pool_serving
from proctor.values.run import RunId
from proctor.values.scoring import OutputType, PromptForm, ScoringMethod, Truncation
from services.common.checked_fields import invalid_field, refuse
from services.common.clock import Clock
from services.common.errors import InvalidParameter, RunNotFound
from services.common.requests.request_fields import user_problem
from services.scheduler.judging.errors import RunNotEnded
from services.scheduler.judging.judge import Judge
from services.scheduler.judging.ports import JudgePrompts
from services.scheduler.pricing.resolve_price import ResolvePrice
from services.scheduler.runs.lifecycle.ports import RunControls, RunStore
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.run_labels import labels_problem, tidy
from services.scheduler.runs.orders.decided_orders import (
    accepted,
    order_of_base,
    refuse_undecidable,
    same_runs_for,
)
from services.scheduler.runs.orders.errors import (
    CannotComplete,
    CannotTruncate,
    NeedsLoglikelihood,
    NeedsTokens,
    Unsupported,
)
from services.scheduler.runs.orders.order_rules import first_problem
from services.scheduler.runs.orders.project_of_order import in_project_of
from services.scheduler.runs.orders.provider_rules import refuse_unfit
from services.scheduler.runs.orders.repeated_tasks import with_repeats
from services.scheduler.runs.orders.resolve_dataset_order import resolve_dataset_order
from services.scheduler.runs.orders.resolve_judge_order import judging_order, resolve_judge
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.code.errors import TaskCodeOff
from services.scheduler.suites.ports import SuiteCatalogue
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.uploads.errors import CannotCompleteLines
from services.scheduler.uploads.ports import ContentSource
from services.scheduler.workers.model_names import (
    Aliases,
    UnknownModel,
    UnknownProvider,
    full_name,
    model_names,
    supported_providers,
)

_MAX_TITLE_CHARACTERS = 255
# Its windows are cut in tokens, as prompts are.
_WHOLE_TEXT = OutputType.LOGLIKELIHOOD_ROLLING


@dataclass(frozen=True, slots=True)
class Submission:
    """`request_id` is the caller's own, so that a repeated call finds the run of the first; "" for none."""

    run_id: RunId
    order: RunOrder
    user: str
    request_id: str = ""
    labels: RunLabels = field(default_factory=RunLabels)
    # What it is compared to once it has completed.
    gate: RunGate | None = None

    @property
    def digest(self) -> bytes:
        """SHA-256 of what is ordered, as it was sent."""
        sent = {"order": to_plain(self.order), "gate": to_plain(self.gate) if self.gate else None}
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).digest()


@dataclass(frozen=True, slots=True)
class _Resolved:
    """The order as resolved; tasks of a suite in its version, else the name of what it is over."""

    order: RunOrder
    tasks: Sequence[TaskDefinition] = ()
    suite_version: int = 0
    dataset_name: str = ""


@dataclass(frozen=True, slots=True)
class SubmitRun:
    runs: RunStore
    suites: SuiteCatalogue
    datasets: ContentSource
    judge_prompts: JudgePrompts
    pools: Sequence[Pool]
    controls: RunControls
    clock: Clock
    pricing: ResolvePrice
    aliases: Aliases = field(default_factory=dict)
    allowed_base_urls: Sequence[BaseUrl] = ()
    # Whether Python code of tasks is.
    executes_code: bool = True

    async def submit(self, submission: Submission) -> Run:
        if submission.request_id and (first := await self._first(submission)):
            return first
        if submission.order.until_decided and submission.request_id:
            run_id = same_runs_for(submission.request_id, submission.user)
            submission = replace(submission, run_id=run_id)
        run, base = [*await self.runs_of(submission), None][:2]
        assert run
        if submission.gate:
            await self.check_gate(submission.gate, run)
        digest = submission.digest if submission.request_id else b""
        stored = await self.runs.add(run, submission.request_id, base, submission.gate, digest=digest)
        # After the store: a notice without a row would wake the leader for nothing.
        await self.controls.announce(stored)
        # Of a repeated call workers have been told, and its base is further than this one by now.
        if base and stored is run:
            await self.controls.announce(base)
        return stored

    async def _first(self, submission: Submission) -> Run | None:
        """The run of a call that is repeated, also where it would be refused by now: such as for a judge
        whose model is gone, or for a base that was deleted."""
        first = await self.runs.repeated(submission.request_id, submission.user, submission.digest)
        if first:
            # The first call may have ended before it did.
            await self.controls.announce(first)
        return first

    async def runs_of(self, submission: Submission) -> Sequence[Run]:
        """What is stored of the order: its run, and of an order until decided the second one."""
        run = await self.prepare(submission)
        return (run, await self._base(submission, run)) if run.order.until_decided else (run,)

    async def prepare(self, submission: Submission) -> Run:
        """The run that the order becomes, checked but for the limits of this moment. Nothing is stored."""
        # Checks of the order alone come first: they need no store and name the field.
        refuse(first_problem(submission.order), of="order")
        refuse(user_problem(submission.user))
        labels = tidy(submission.labels)
        refuse(labels_problem(labels), of="labels")
        resolved = await self._resolved(self._named_in_full(submission.order))
        order = with_repeats(resolved.order, resolved.tasks)
        pool = self._pool(order)
        # With the form that was asked for: one that the data set's lines decided gets another sentence.
        if wanted := order.until_decided:
            refuse_undecidable(order, wanted, resolved.tasks)
            order = order if wanted.is_base else accepted(order, wanted, submission.run_id)
        _check_form(order, pool, asked_form=submission.order.prompt_form)
        refuse_unfit(order, resolved.tasks, pool, self.allowed_base_urls)
        self._check_judges(submission, order)
        now = self.clock.now()
        window = order.completion_window_seconds
        return Run(
            run_id=submission.run_id,
            order=order,
            user=submission.user,
            pool=pool.name,
            scoring_method=resolve_scoring_method(order, resolved.tasks, pool),
            created_at=now,
            suite_version=resolved.suite_version,
            price=self.pricing.price_of(order.model, order.base_url, order.max_cost),
            dataset_name=resolved.dataset_name,
            expires_at=None if window is None else now + timedelta(seconds=window),
            labels=labels,
        )

    async def check_gate(self, gate: RunGate, run: Run) -> None:
        """Raises `InvalidParameter`, and `RunNotFound` for a base that the caller may not read."""
        refuse(gate.problem)
        if run.order.until_decided:
            raise invalid_field("gate", "is given, but the runs are decided between already: leave one out")
        if not gate.base_run_id:
            return
        base = await self.runs.get(RunId(gate.base_run_id))
        # Whoever reads the run or its schedule reads what is said of the base, too.
        if base.order.project_id != run.order.project_id:
            raise invalid_field("gate.base_run_id", f"is in another project: {base.run_id}")
        if base_name(base.order.benchmark) != base_name(run.order.benchmark):
            over = f"{base.order.benchmark}, not over {run.order.benchmark}"
            raise invalid_field("gate.base_run_id", f"is a run over {over}")

    def _check_judges(self, submission: Submission, order: RunOrder) -> None:
        """Before anything is paid for: raises what the orders of the judges that are named would raise."""
        if order.has_judges_of_suite:
            self._check_judges_of_suite(submission.run_id, order)
            return
        for number, named in enumerate(order.judges):
            try:
                self._check_judge(submission.run_id, order, named)
            except InvalidParameter as error:
                field = f"order.judges[{number}]"
                raise InvalidParameter(field=field, sentence=error.message) from error

    def _check_judges_of_suite(self, run_id: RunId, order: RunOrder) -> None:
        """Whoever orders has named none of them, so the sentence says whose they are."""
        try:
            # They were no part of what was sent, whose size is checked.
            refuse(first_problem(order), of="order")
            for named in order.judges:
                self._check_judge(run_id, order, named)
        except (InvalidParameter, UnknownModel, UnknownProvider) as error:
            advice = "Name judges in the order, or mend the suite."
            sentence = f"A judge of the suite {order.suite} cannot be asked: {error.message} {advice}"
            raise InvalidParameter(field="order.judges", sentence=sentence) from error

    def _check_judge(self, run_id: RunId, order: RunOrder, named: NamedJudge) -> None:
        judging = self._named_in_full(judging_order(run_id, order, named))
        refuse(first_problem(judging), of="order")
        pool = self._pool(judging)
        assert judging.judge
        resolve_judge(judging.judge, self.judge_prompts, pool)
        refuse_unfit(judging, (), pool)

    async def _base(self, submission: Submission, run: Run) -> Run:
        """The second run of an order until decided."""
        base_id, order = order_of_base(submission.order, run.order, run.run_id)
        base = await self.prepare(replace(submission, run_id=base_id, order=order, request_id=""))
        if base.scoring_method is not run.scoring_method:
            ways = f"by {run.scoring_method} of {run.order.model}, by {base.scoring_method} of {order.model}"
            sentence = f"Choices would be scored {ways}. Order a scoring_method that both can."
            raise InvalidParameter(field="order.scoring_method", sentence=sentence)
        return base

    def _named_in_full(self, order: RunOrder) -> RunOrder:
        if wanted := order.until_decided:
            against = full_name(wanted.against_model, self.aliases)
            order = replace(order, until_decided=replace(wanted, against_model=against))
        return replace(order, model=full_name(order.model, self.aliases), base_url=order.base_url.rstrip("/"))

    async def _resolved(self, order: RunOrder) -> _Resolved:
        """The version of a suite that the run keeps to, whatever is added until it is planned."""
        if order.dataset_id:
            named = await self.datasets.content(order.dataset_id)
            order = in_project_of(order, named.project_id)
            of_dataset = resolve_dataset_order(order, named.content, self.aliases)
            return _Resolved(of_dataset, dataset_name=named.name)
        if order.judge:
            return await self._judging(order, order.judge)
        suite = await self.suites.suite(order.suite)
        order = in_project_of(order, suite.project_id)
        # Resolved now, although planning reads the suite again: an unknown task is refused to its user.
        tasks = [suite.task(name) for name in order.tasks] or suite.tasks
        if not self.executes_code:
            _refuse_code(tasks)
        if not (order.judges or order.without_judges):
            order = replace(order, judges=suite.judges, has_judges_of_suite=True)
        return _Resolved(replace(order, suite=suite.name), tasks, suite.version)

    async def _judging(self, order: RunOrder, judge: Judge) -> _Resolved:
        """Raises `RunNotEnded` for a run that may still get answers, `RunNotFound`, `InvalidParameter`."""
        judged = await self._ended(judge.run_id)
        against = await self._ended(judge.against_run_id) if judge.against_run_id else None
        if against and against.run_id == judged.run_id:
            sentence = "A run is not compared with itself: name another run of the same benchmark."
            raise InvalidParameter(field="order.judge.against_run_id", sentence=sentence)
        if against and against.order.benchmark != judged.order.benchmark:
            sentence = f"Run {against.run_id} is over another benchmark than {judged.run_id}."
            raise InvalidParameter(field="order.judge.against_run_id", sentence=sentence)
        for each in (judged, against):
            if each:
                order = in_project_of(order, each.order.project_id)
        named = replace(
            judge,
            run_id=judged.run_id,
            rollouts=judged.order.rollouts,
            against_run_id=against.run_id if against else "",
        )
        resolved = resolve_judge(named, self.judge_prompts, self._pool(order))
        models = judged.order.model
        if against or judge.against_target:
            models = f"{models} against {against.order.model if against else 'targets'}"
        title = f"{resolved.prompt} of {models} on {judged.dataset_name or judged.suite_name}"
        return _Resolved(replace(order, judge=resolved), dataset_name=title[:_MAX_TITLE_CHARACTERS])

    async def _ended(self, run_id: str) -> Run:
        try:
            run = await self.runs.get(RunId(str(UUID(run_id))))
        except ValueError as error:
            raise RunNotFound(run_id=run_id) from error
        if not run.is_closed:
            raise RunNotEnded(run_id=run.run_id, state=run.display_state)
        return run

    def _pool(self, order: RunOrder) -> Pool:
        providers = supported_providers(self.pools)
        if order.provider not in providers:
            advice = " Write the model as provider/name."
            supported = ", ".join(providers) or "none"
            raise UnknownProvider(provider=order.provider, advice=advice, supported=supported)
        if not split_model(order.model)[1].strip():
            sentence = f'model is "{order.model}", but must name a model after the provider: provider/name.'
            raise InvalidParameter(field="order.model", sentence=sentence)
        pool = pool_serving(order.model, self.pools)
        if pool is None:
            of_provider = sorted(
                name for name in model_names(self.pools) if name.startswith(f"{order.provider}/")
            )
            raise UnknownModel(model=order.model, supported=", ".join(of_provider) or "none")
        if order.truncation is not Truncation.NONE and not pool.can_truncate:
            raise CannotTruncate(pool=pool.name)
        return pool


def _refuse_code(tasks: Sequence[TaskDefinition]) -> None:
    """Raises `TaskCodeOff` where a task has Python code."""
    for task in tasks:
        if task.has_code:
            raise TaskCodeOff(task=task.name, keys=", ".join(task.code_keys))


def _check_form(order: RunOrder, pool: Pool, asked_form: PromptForm | None) -> None:
    if order.prompt_form is not PromptForm.COMPLETION or pool.can_complete:
        return
    if asked_form is None:
        raise CannotCompleteLines(pool=pool.name, engine=pool.engine)
    raise CannotComplete(pool=pool.name, engine=pool.engine)


def resolve_scoring_method(order: RunOrder, tasks: Sequence[TaskDefinition], pool: Pool) -> ScoringMethod:
    """The way that was ordered, else by log-likelihood where the pool can, else by generation.

    A given text is scored by log-likelihood only.
    """
    if all(task.scoring.output_type is OutputType.GENERATE_UNTIL for task in tasks):
        if order.scoring_method not in (None, ScoringMethod.GENERATE):
            sentence = (
                f"scoring_method is {order.scoring_method}, but no task ordered has choices to score so."
            )
            raise InvalidParameter(field="order.scoring_method", sentence=f"{sentence} Leave it out.")
        return ScoringMethod.GENERATE
    methods = pool.methods_for(order.prompt_form)
    wanted = order.scoring_method or methods[0]
    given = next((task for task in tasks if task.scoring.output_type.is_of_given_text), None)
    whole = next((task for task in tasks if task.scoring.output_type is _WHOLE_TEXT), None)
    if whole is not None and not pool.can_truncate:
        raise NeedsTokens(task=whole.name, output_type=_WHOLE_TEXT, pool=pool.name, engine=pool.engine)
    if given is not None and wanted is not ScoringMethod.LOGLIKELIHOOD:
        raise NeedsLoglikelihood(
            task=given.name,
            output_type=given.scoring.output_type,
            pool=pool.name,
            scoring_method=wanted.value,
        )
    if wanted in methods:
        return wanted
    raise Unsupported(
        model=order.model,
        pool=pool.name,
        scoring_method=wanted.value,
        where=" after a chat prompt" if wanted in pool.scoring_methods else "",
        supported=" or ".join(methods),
    )
