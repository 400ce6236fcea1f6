"""Removes all that is known of a run. What is not there is no error, so a call can be repeated."""

from services.results.summaries.ports import Stores


class DeleteRunRecord:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def __call__(self, run_id: str) -> None:
        """The record goes first: from then on no outcome of the run is taken.

        What a kill leaves goes with the next call.
        """
        await self._stores.records.delete(run_id)
        await self._stores.outcomes.delete(run_id)
