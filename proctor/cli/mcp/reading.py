"""Tools that read: suites, models, runs, figures, comparisons and answers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from proctor.cli.mcp.documents import Document, answer_facts, brief, run_facts
from proctor.cli.render.words import option_value
from proctor.client.errors import NotFound
from proctor.client.pages import full_page
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import comparison_service_pb2, outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.run import STATE_WORDS

_MOST_MODELS = 200
_PAGE = 20
# The score that a wrong answer has where answers are right or wrong.
_WRONG = 0.0

Answers = Literal["wrong", "unparsed", "failed", "all"]


@dataclass(frozen=True, slots=True)
class ReadingTools:
    client: ProctorClient

    def tools(self) -> Sequence[Callable[..., Awaitable[Document]]]:
        return (
            self.list_suites,
            self.list_models,
            self.list_runs,
            self.results,
            self.compare,
            self.gate,
            self.read_answers,
        )

    async def list_suites(
        self, suite: Annotated[str, Field(description="Only this one, with its tasks in full")] = ""
    ) -> Document:
        """List the benchmark suites with the names of their tasks."""
        listed = (await self.client.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites
        if not suite:
            return {"suites": [_suite_facts(each) for each in listed]}
        for each in listed:
            if each.suite == suite:
                return brief(each)
        raise NotFound(f"There is no suite {suite}: list_suites without a name lists all.")

    async def list_models(
        self,
        provider: Annotated[str, Field(description="Only of this provider, such as openai")] = "",
        containing: Annotated[str, Field(description="Only models with this in their name")] = "",
    ) -> Document:
        """List the models that can be evaluated now, and why a provider or pool has none."""
        listed = await self.client.runs.ListModels(scheduler_pb2.ListModelsRequest(provider=provider))
        found = [brief(each) for each in listed.models if containing.lower() in each.model.lower()]
        return {
            "models": list(found[:_MOST_MODELS]),
            "left_out": max(0, len(found) - _MOST_MODELS),
            "aliases": dict(listed.aliases),
            "problems": [brief(each) for each in listed.sources if each.problem],
        }

    async def list_runs(
        self,
        state: Annotated[str, Field(description=STATE_WORDS)] = "",
        model: Annotated[str, Field(description="Only this model")] = "",
        benchmark: Annotated[str, Field(description="Only this suite")] = "",
        page_token: Annotated[str, Field(description="next_page_token of the page before")] = "",
    ) -> Document:
        """List runs, newest first."""
        request = scheduler_pb2.ListRunsRequest(
            state=option_value(run_pb2.RunState, state, "state"),
            model=model,
            benchmark=benchmark,
            page_size=_PAGE,
            page_token=page_token,
        )
        listed = await self.client.runs.ListRuns(request)
        return {
            "runs": [run_facts(each) for each in listed.runs],
            "total": listed.total,
            "next_page_token": listed.next_page_token,
        }

    async def results(self, run_id: Annotated[str, Field(description="Id of a run")]) -> Document:
        """Read the figures of a run, each with its 95 % interval; partial while it goes."""
        found = await self.client.results(run_id)
        return {
            **run_facts(found.run),
            "title": found.title,
            "is_partial": found.summary.is_partial,
            "figures": [asdict(figure) for figure in found.figures],
            "unparsed": found.summary.unparsed,
            "failed": found.summary.failed,
            "problems": list(found.summary.problems),
        }

    async def compare(
        self,
        run_ids: Annotated[list[str] | None, Field(description="Ids of two to six runs")] = None,
        models: Annotated[list[str] | None, Field(description="Or models: their latest runs")] = None,
        benchmark: Annotated[str, Field(description="Suite, where models are named")] = "",
        metrics: Annotated[list[str] | None, Field(description="Default: the main ones")] = None,
    ) -> Document:
        """Compare runs, paired by sample: difference, 95 % interval, corrected p and verdict per task."""
        request = comparison_service_pb2.CompareRunsRequest(
            run_ids=run_ids, models=models, benchmark=benchmark, metrics=metrics
        )
        return brief((await self.client.comparisons.CompareRuns(request)).comparison)

    async def gate(
        self,
        run_id: Annotated[str, Field(description="Id of the run to decide about")],
        base_run_id: Annotated[str, Field(description="Id of the run it must not be worse than")],
        margin_points: Annotated[float, Field(description="Accepted drop in points of a hundred")] = 1.0,
    ) -> Document:
        """Decide whether a run is worse than its base by more than a margin: pass, fail or inconclusive."""
        request = comparison_service_pb2.GateRunRequest(
            run_id=run_id, base_run_id=base_run_id, margin_points=margin_points
        )
        return brief((await self.client.comparisons.GateRun(request)).gate)

    async def read_answers(
        self,
        run_id: Annotated[str, Field(description="Id of a run")],
        which: Annotated[
            Answers,
            Field(
                description="wrong: of the lowest score. unparsed: nothing was read from them. failed: the "
                "machinery failed, which is no answer. all"
            ),
        ] = "wrong",
        task: Annotated[str, Field(description="Only of this task")] = "",
        at_most: Annotated[float, Field(description="Highest score of a wrong answer")] = _WRONG,
        page_token: Annotated[str, Field(description="next_page_token of the page before")] = "",
    ) -> Document:
        """Read answers of a run one by one: prompt, target, answer, what was read from it, scores."""
        is_by_status = which in ("unparsed", "failed")
        request = results_pb2.ListOutcomesRequest(
            run_id=run_id,
            task=task,
            page_size=_PAGE,
            page_token=page_token,
            status=option_value(outcome_pb2.OutcomeStatus, which if is_by_status else "", "which"),
            filter=results_pb2.OutcomeFilter(max_score=at_most) if which == "wrong" else None,
            includes_verdicts=True,
        )
        found, next_page = await full_page(
            self.client.outcomes.ListOutcomes, request, lambda page: page.outcomes
        )
        return {"answers": [answer_facts(each) for each in found], "next_page_token": next_page}


def _suite_facts(suite: scheduler_pb2.SuiteInfo) -> Document:
    facts: Document = {
        "suite": suite.suite,
        "description": suite.description,
        "tasks": [each.task for each in suite.tasks],
    }
    return {**facts, "problem": suite.problem} if suite.problem else facts
