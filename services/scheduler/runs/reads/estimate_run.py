"""Estimates the end and the cost of a run from the queue and from runs like it."""

from dataclasses import dataclass

from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.ports import RunLists
from services.scheduler.runs.reads.run_snapshot import RunEstimate, estimated_cost


@dataclass(frozen=True, slots=True)
class EstimateRun:
    lists: RunLists
    forecasts: ForecastQueue

    async def estimate(self, run: Run, *, is_stored: bool = True) -> RunEstimate:
        """When a run that was just submitted, or would be, will end, and what it will cost."""
        forecasts = self.forecasts
        forecast = await (forecasts.forecast([run]) if is_stored else forecasts.if_ordered(run))
        time = forecast.time_to_end(run)
        if run.price is None:
            return RunEstimate(time, None)
        history = await self.lists.past_usage(run)
        return RunEstimate(time, estimated_cost(run.order, run.price, history, forecast.rows_of(run)))
