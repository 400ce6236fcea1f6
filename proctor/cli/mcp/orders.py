"""Tools that order runs and follow them."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from proctor.cli.mcp.documents import Document, brief, run_facts
from proctor.cli.render import words
from proctor.cli.render.words import option_value
from proctor.cli.runs.order import PRIORITY_HELP
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import queue_service_pb2 as queue_pb2
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import FINAL_NUMBERS
from proctor.wire.well_known import unless_empty

# Clients of MCP give up on a call after a minute or more, unless it reports progress.
_WAIT_SECONDS = 50.0
_MOST_WAIT_SECONDS = 3600.0

RunId = Annotated[str, Field(description="Id of a run, as order_run and list_runs give it")]


class JudgeOfOrder(BaseModel):
    """The model of the order judges the answers of a run that has ended."""

    run_id: RunId
    prompt: str = Field(
        description="correctness, helpfulness, faithfulness, refusal, style, safety; preference compares two"
    )
    scale: str = Field("", description="yes-no, 1-5, or labels:good=1,poor=0; default: that of the prompt")
    against_run_id: str = Field("", description="Compare each answer with that of this run, in both orders")
    against_target: bool = Field(False, description="Compare each answer with the target of its row instead")

    def message(self) -> run_pb2.Judge:
        return run_pb2.Judge(**self.model_dump())


class NamedJudgeOfOrder(BaseModel):
    """A model that judges the answers once the run is completed, in a run of its own."""

    model: str = Field(description="provider/name of the judge")
    prompt: str = Field("", description="As of an order that judges, but preference; default: correctness")
    scale: str = Field("", description="yes-no, 1-5, or labels:good=1,poor=0; default: that of the prompt")

    def message(self) -> run_pb2.NamedJudge:
        return run_pb2.NamedJudge(**self.model_dump())


class UntilDecidedOfOrder(BaseModel):
    """A second run, of another model over the same samples: both stop once they are decided between."""

    against_model: str = Field(description="provider/name of the other model")
    margin_points: float | None = Field(
        None, description="Smaller differences are equivalent, in hundredths; default: none is"
    )
    alpha: float | None = Field(None, description="Chance of a wrong decision; default: 0.05")

    def message(self) -> run_pb2.UntilDecided:
        return run_pb2.UntilDecided(**self.model_dump())


class Order(BaseModel):
    """What is evaluated on what: `suite`, the id of a data set, or a run whose answers are judged."""

    model: str = Field(description="provider/name, as list_models gives it, such as openai/gpt-4o-mini")
    suite: str = Field("", description="A suite, as list_suites gives it")
    dataset_id: str = Field("", description="A data set instead of a suite")
    judge: JudgeOfOrder | None = Field(None, description="Judge the answers of a run instead")
    judges: list[NamedJudgeOfOrder] | None = Field(
        None,
        description="Judges of the answers, [] for none; default: those of the suite. "
        "The estimate is without their cost",
    )
    until_decided: UntilDecidedOfOrder | None = Field(
        None, description="Compare with another model; estimate and max_cost are of each run"
    )
    tasks: list[str] = Field([], description="Tasks of the suite; none means all")
    limit: int | None = Field(None, description="First N rows of each task: begin with few, such as 20")
    num_fewshot: int | None = Field(None, description="Examples in each prompt; default: the task's")
    rollouts: int | None = Field(None, description="Repetitions of each sample")
    temperature: float | None = Field(None, description="0 to 2; 0 is greedy")
    max_tokens: int | None = Field(None, description="Maximum number of tokens of an answer")
    scoring_method: str = Field(
        "",
        description="Of choices: loglikelihood, generate or constrained; default: what the server is known "
        "to do. generate works with every server",
    )
    priority: str = Field("", description=PRIORITY_HELP)
    project: int | str = Field(0, description="Number or name of the project that groups runs")

    def message(self, project_id: int, max_cost: float | None = None) -> run_pb2.RunOrder:
        try:
            params = run_pb2.GenerationParams(temperature=self.temperature, max_tokens=self.max_tokens)
            return run_pb2.RunOrder(
                project_id=project_id,
                model=self.model,
                suite=self.suite,
                dataset_id=self.dataset_id,
                judge=self.judge.message() if self.judge else None,
                judges=[judge.message() for judge in self.judges or ()],
                without_judges=self.judges == [],
                until_decided=self.until_decided.message() if self.until_decided else None,
                tasks=self.tasks,
                limit=self.limit,
                num_fewshot=self.num_fewshot,
                rollouts=self.rollouts,
                scoring_method=option_value(run_pb2.ScoringMethod, self.scoring_method, "scoring_method"),
                priority=option_value(run_pb2.Priority, self.priority, "priority"),
                params=unless_empty(params),
                max_cost=max_cost,
            )
        except ValueError as error:
            raise Refused(f"A number of the order is too large: {error}.") from error


@dataclass(frozen=True, slots=True)
class OrderTools:
    client: ProctorClient

    def reading_tools(self) -> Sequence[Callable[..., Awaitable[Document]]]:
        return (self.estimate_run, self.wait_for_run, self.explain_wait)

    def changing_tools(self) -> Sequence[Callable[..., Awaitable[Document]]]:
        return (self.order_run, self.retry_run)

    async def estimate_run(self, order: Order) -> Document:
        """Estimate time and cost of a run without ordering it; what no earlier run tells is missing."""
        estimated = await self._estimate(order)
        return brief(estimated)

    async def order_run(
        self,
        order: Order,
        max_cost: Annotated[
            float | None,
            Field(description="The run fails when it has cost this much. Needed where the model has a price"),
        ] = None,
    ) -> Document:
        """Order a run. Refused where its estimate is above max_cost; gives its id, for wait_for_run."""
        estimated = await self._estimate(order)
        self._refuse_cost(order, estimated, max_cost)
        message = order.message(await self.client.number_of_project(order.project), max_cost)
        request = scheduler_pb2.SubmitRunRequest(order=message, request_id=str(uuid.uuid4()))
        submitted = await self.client.runs.SubmitRun(request)
        against = submitted.run.order.until_decided.against_run_id
        second = {"against_run_id": against} if against else {}
        return {**run_facts(submitted.run), **second, "estimate": brief(estimated)}

    async def wait_for_run(
        self,
        run_id: RunId,
        context: Context,
        seconds: Annotated[
            float,
            Field(gt=0, le=_MOST_WAIT_SECONDS, description="Return after this; the run goes on"),
        ] = _WAIT_SECONDS,
    ) -> Document:
        """Wait until a run is over. Where is_final is false, the time was up: call it again."""
        run = await self.client.run(run_id)
        try:
            async with asyncio.timeout(seconds), aclosing(self.client.watch_run(run_id)) as changes:
                async for run in changes:
                    progress = run.progress
                    await context.report_progress(progress.recorded, progress.total or None, words.phase(run))
        except TimeoutError:
            pass
        return run_facts(run)

    async def explain_wait(self, run_id: RunId) -> Document:
        """Say why a run waits: its place in the queue, what blocks it, expected start, workers and limits."""
        run = await self.client.run(run_id)
        facts = run_facts(run)
        if run.state in FINAL_NUMBERS:
            return {**facts, "explanation": f"The run is {facts['state']}: it waits for nothing."}
        queue = await self.client.queue.GetQueue(queue_pb2.GetQueueRequest())
        return {
            **facts,
            "explanation": words.phase(run),
            "wait": brief(run.wait),
            "running": [run_facts(each) for each in queue.running],
            "workers": [brief(each) for each in queue.workers if each.pool == run.pool or not run.pool],
            "limits": brief(queue.limits),
            "refused_streams": [brief(each) for each in queue.refused_streams],
            "full_disks": [brief(each) for each in queue.full_disks],
        }

    async def retry_run(self, run_id: RunId) -> Document:
        """Run a failed or cancelled run again, for the missing answers only. Wait for it before."""
        retried = await self.client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))
        return run_facts(retried.run)

    async def cancel_run(self, run_id: RunId) -> Document:
        """Cancel a run: requests in flight are aborted, recorded answers are kept."""
        cancelled = await self.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=run_id))
        return run_facts(cancelled.run)

    async def _estimate(self, order: Order) -> scheduler_pb2.EstimateRunResponse:
        project_id = await self.client.number_of_project(order.project)
        request = scheduler_pb2.EstimateRunRequest(order=order.message(project_id))
        return await self.client.runs.EstimateRun(request)

    def _refuse_cost(
        self, order: Order, estimated: scheduler_pb2.EstimateRunResponse, max_cost: float | None
    ) -> None:
        if not estimated.HasField("price"):
            return
        has_cost = estimated.HasField("estimated_cost")
        amount = words.priced(estimated.estimated_cost, estimated.price)
        expected = amount if has_cost else "an unknown amount"
        if max_cost is None:
            raise Refused(
                f"{order.model} has a price, and the run is expected to cost {expected}: set max_cost, in "
                f"{estimated.price.currency}."
            )
        if has_cost and estimated.estimated_cost > max_cost:
            raise Refused(
                f"The run is expected to cost {expected}, more than max_cost {max_cost:g}: set a smaller "
                "limit of rows, or a higher max_cost."
            )
