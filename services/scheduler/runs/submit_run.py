"""An order becomes a run: checked against suites, pools and limits, then stored as pending."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.pools.pool import Pool, pool_of, supported_providers
from services.scheduler.pools.provider_rules import refuse_unfit
from services.scheduler.ports import RunControls, RunStore, SuiteCatalogue
from services.scheduler.prices.settle_price import SettlePrice
from services.scheduler.runs.run import Run, RunId
from services.scheduler.runs.run_order import (
    PromptForm,
    RunOrder,
    ScoringMethod,
    Truncation,
    first_problem,
)
from services.scheduler.runs.show_queue import ShowQueue
from services.scheduler.runs.user_name import user_problem
from services.scheduler.suites.suite_errors import SuiteError
from services.scheduler.suites.task_definition import OutputType, SuiteDefinition, TaskDefinition


@dataclass(frozen=True, slots=True)
class Submission:
    """`request_id` is the caller's own, so that a repeated call finds the run of the first; "" for none."""

    run_id: RunId
    order: RunOrder
    user: str
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class SubmittedRun:
    run: Run
    estimated_seconds: float | None
    estimated_cost: float | None = None


@dataclass(frozen=True)
class SubmitRun:
    runs: RunStore
    suites: SuiteCatalogue
    pools: Sequence[Pool]
    controls: RunControls
    clock: Clock
    pricing: SettlePrice
    queue: ShowQueue

    async def submit(self, submission: Submission) -> SubmittedRun:
        _check(submission.order, submission.user)
        suite, tasks = await self._ordered_suite(submission.order)
        order = replace(submission.order, suite=suite.name, base_url=submission.order.base_url.rstrip("/"))
        pool = self._pool(order)
        refuse_unfit(order, tasks, pool)
        run = Run(
            run_id=submission.run_id,
            order=order,
            user=submission.user,
            pool=pool.name,
            scoring_method=settled_scoring_method(order, tasks, pool),
            created_at=self.clock.now(),
            environment={"proctor.project": str(order.project_id)},
            suite_version=suite.version,
            price=self.pricing.price_of(order),
        )
        stored = await self.runs.add(run, submission.request_id)
        await self.controls.tell(stored)
        seconds = await self.queue.seconds_to_end(stored)
        return SubmittedRun(stored, seconds, await self.pricing.estimate(stored))

    async def _ordered_suite(self, order: RunOrder) -> tuple[SuiteDefinition, Sequence[TaskDefinition]]:
        """The version that the run keeps to, whatever is added until it is planned."""
        try:
            suite = await self.suites.suite(order.suite)
            return suite, [suite.task(name) for name in order.tasks] or suite.tasks
        except SuiteError as error:
            raise errors.refusal_of(error) from error

    def _pool(self, order: RunOrder) -> Pool:
        providers = supported_providers(self.pools)
        if order.provider not in providers:
            raise errors.UnknownProvider(provider=order.provider, supported=", ".join(providers) or "none")
        if not order.model.partition("/")[2].strip():
            sentence = f'model is "{order.model}", but must name a model after the provider: provider/name.'
            raise errors.InvalidParameter(field="order.model", sentence=sentence)
        pool = pool_of(order.model, self.pools)
        if pool is None:
            names = [name for pool in self.pools for name in pool.models]
            of_provider = sorted(name for name in names if name.startswith(f"{order.provider}/"))
            raise errors.UnknownModel(model=order.model, supported=", ".join(of_provider) or "none")
        if order.truncation is not Truncation.NONE and not pool.can_truncate:
            raise errors.CannotTruncate(pool=pool.name)
        if order.prompt_form is PromptForm.COMPLETION and not pool.can_complete:
            raise errors.CannotComplete(pool=pool.name, engine=pool.engine)
        return pool


def _check(order: RunOrder, user: str) -> None:
    problem = first_problem(order)
    if problem:
        raise errors.InvalidParameter(field=f"order.{problem.field}", sentence=problem.sentence)
    problem = user_problem(user)
    if problem:
        raise errors.InvalidParameter(field=problem.field, sentence=problem.sentence)


def settled_scoring_method(order: RunOrder, tasks: Sequence[TaskDefinition], pool: Pool) -> ScoringMethod:
    """The way that was ordered, else by log-likelihood where the pool can, else by generation."""
    if not any(task.scoring.output_type is OutputType.MULTIPLE_CHOICE for task in tasks):
        if order.scoring_method not in (None, ScoringMethod.GENERATE):
            sentence = (
                f"scoring_method is {order.scoring_method}, but no task ordered has choices to score so."
            )
            raise errors.InvalidParameter(field="order.scoring_method", sentence=f"{sentence} Leave it out.")
        return ScoringMethod.GENERATE
    methods = pool.scoring_methods(order.prompt_form)
    wanted = order.scoring_method or methods[0]
    if wanted in methods:
        return wanted
    raise errors.Unsupported(
        model=order.model,
        pool=pool.name,
        scoring_method=wanted.value,
        where=" after a chat prompt" if wanted in pool.can else "",
        supported=" or ".join(methods),
    )
