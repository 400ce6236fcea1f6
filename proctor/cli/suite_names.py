"""Suites, and data sets in their place, that a command names to look for runs."""

from proctor.client import ProctorClient
from proctor.client_errors import NotFound

DATASET_PREFIX = "ds_"


async def refuse_unknown_suite(client: ProctorClient, suite: str) -> None:
    """Asked where nothing was found: runs of a suite that was removed are still shown."""
    if suite.startswith(DATASET_PREFIX):
        await client.datasets.get(suite)
        return
    known = [listed.suite for listed in await client.list_suites()]
    if suite and suite not in known:
        raise NotFound(f"There is no suite {suite}. There are: {', '.join(known)}.", "UNKNOWN_SUITE")
