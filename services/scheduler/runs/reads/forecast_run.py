"""Forecasts the end and the cost of a run from the queue and from runs like it."""

from dataclasses import dataclass

from services.scheduler.runs.admission.forecast_queue import ForecastQueue
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.reads.ports import RunLists
from services.scheduler.runs.reads.run_snapshot import RunForecast, estimated_cost


@dataclass(frozen=True, slots=True)
class ForecastRun:
    lists: RunLists
    forecasts: ForecastQueue

    async def forecast(self, run: Run, *, is_stored: bool = True) -> RunForecast:
        """When a run that was just submitted, or would be, will end, and what it will cost."""
        estimate = self.forecasts.seconds_to_end if is_stored else self.forecasts.seconds_if_ordered
        seconds = await estimate(run)
        if run.price is None:
            return RunForecast(seconds, None)
        history = await self.lists.past_usage(run)
        return RunForecast(seconds, estimated_cost(run.order, run.price, history))
