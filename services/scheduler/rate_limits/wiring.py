"""Joins the parts of rate limits: what workers report, and the quotas that the leader assigns."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.providers.pool import Pool
from services.common.nats import streams
from services.common.nats.bucket import Bucket
from services.scheduler.postgres import Connections
from services.scheduler.rate_limits.assign_quotas import AssignQuotas
from services.scheduler.rate_limits.key_groups import key_groups
from services.scheduler.rate_limits.nats import NatsQuotas, NatsRateReports
from services.scheduler.rate_limits.rate_meter import RateLimitTracker, RequestRetryBudget
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitParts:
    tracker: RateLimitTracker
    request_retry_budget: RequestRetryBudget
    reports: NatsRateReports
    assign_quotas: AssignQuotas


def make_rate_limits(
    settings: SchedulerSettings, connections: Connections, *, pools: Sequence[Pool]
) -> RateLimitParts:
    jetstream, clock = connections.jetstream, connections.clock
    tracker = RateLimitTracker(groups=key_groups(pools))
    request_retry_budget = RequestRetryBudget(share=settings.max_request_retry_share)
    return RateLimitParts(
        tracker=tracker,
        request_retry_budget=request_retry_budget,
        reports=NatsRateReports(
            connection=jetstream.connection, tracker=tracker, budget=request_retry_budget, clock=clock
        ),
        assign_quotas=AssignQuotas(
            tracker=tracker,
            store=NatsQuotas(bucket=Bucket(jetstream=jetstream, spec=streams.QUOTAS_BUCKET)),
            clock=clock,
        ),
    )
