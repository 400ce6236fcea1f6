"""Settings: what is reachable, which versions run, and the theme."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import Response

from proctor.distribution import NAME
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.values.providers.remote_providers import REMOTE_PROVIDERS
from services.common.errors import DomainError, ErrorKind
from services.gateway.api.models import SourceShown
from services.gateway.auth.identity import CallerOf, Identity, Now
from services.gateway.auth.settings_keys import ConfiguredUser
from services.gateway.backends.calls import Scheduler, SchedulerCalls
from services.gateway.backends.health import BackendHealth
from services.gateway.http.presentation import present
from services.gateway.pages.page import PageOf, theme_of

_KINDS = {
    "datasets": "Data sets",
    "files": "Files",
    "batch_output": "Batch outputs",
    "suites": "Suites",
    "tasks": "Tasks of rollouts",
    "artifacts": "Artifacts of rollouts",
}
_PACKAGES = (NAME, "fastapi", "uvicorn", "grpcio", "protobuf")

router = APIRouter(prefix="/settings", include_in_schema=False)


class PoolRow(SourceShown):
    """A pool, or a known provider without one.

    `api_key_envs` are the environment variables of its workers that may hold its key; no key is shown.
    `has_key` is None where no worker says whether it has one.
    """

    api_key_envs: list[str]
    models: int = 0
    has_key: bool | None = None


@dataclass(frozen=True, slots=True)
class SettingsView:
    """`users` have API keys; there are none where the gateway has no keys."""

    user: str
    is_operator: bool
    users: Sequence[ConfiguredUser]
    theme: str
    health: Mapping[str, str]
    sources: Sequence[PoolRow]
    aliases: Mapping[str, str]
    # Why the scheduler lists nothing now.
    fault: str
    # The user's storage of each kind, of all kinds, and the quota.
    storage: Sequence[tuple[str, storage_pb2.StorageUse]]
    versions: Mapping[str, str]
    now: datetime


@router.get("")
async def show_settings(
    request: Request, page: PageOf, scheduler: SchedulerCalls, caller: CallerOf, now: Now
) -> Response:
    health: BackendHealth = request.app.state.health
    identity: Identity = request.app.state.identity
    (listed, fault), stored, states = await asyncio.gather(
        _models(scheduler), _stored(scheduler), health.check()
    )
    view = SettingsView(
        user=caller.name,
        is_operator=caller.is_operator,
        users=identity.settings.users,
        theme=theme_of(request),
        health=states,
        sources=_pools(listed),
        aliases=dict(sorted(listed.aliases.items())),
        fault=fault,
        storage=_storage(stored),
        versions={name: version(name) for name in _PACKAGES},
        now=now,
    )
    return page.show("settings/settings", view)


def _pools(listed: scheduler_pb2.ListModelsResponse) -> list[PoolRow]:
    """All pools, then the known providers that have none; nothing where no pool was listed."""
    counts = Counter(model.pool for model in listed.models)
    pools = [
        present(
            PoolRow,
            each,
            api_key_envs=[each.api_key_env] if each.api_key_env else [],
            models=counts[each.pool],
        )
        for each in listed.sources
    ]
    served = {name for pool in pools for name in pool.provider.split(", ")}
    nowhere = scheduler_pb2.ModelSource()
    others = [
        present(PoolRow, nowhere, provider=each.name, api_key_envs=each.api_key_envs)
        for each in REMOTE_PROVIDERS.values()
        if each.name not in served
    ]
    return [*pools, *others] if pools else []


async def _models(scheduler: Scheduler) -> tuple[scheduler_pb2.ListModelsResponse, str]:
    """The models and pools, or none and why: which service is away is read on this page."""
    try:
        return await scheduler.runs.ListModels(scheduler_pb2.ListModelsRequest()), ""
    except DomainError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise
        return scheduler_pb2.ListModelsResponse(), error.message


async def _stored(scheduler: Scheduler) -> storage_pb2.GetStorageResponse | None:
    """None while it cannot be read."""
    try:
        return await scheduler.storage.GetStorage(storage_pb2.GetStorageRequest())
    except DomainError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise
        return None


def _storage(
    stored: storage_pb2.GetStorageResponse | None,
) -> list[tuple[str, storage_pb2.StorageUse]]:
    if stored is None:
        return []
    kinds = [(_KINDS.get(share.kind, share.kind), share.used) for share in stored.shares]
    return [*kinds, ("All", stored.used), ("Limit", stored.limit)]
