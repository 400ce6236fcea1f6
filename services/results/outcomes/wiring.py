"""Joins the consumer of outcomes with what records them."""

from nats.aio.client import Client

from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.streams import outcome_consumer
from services.common.process import usable_shard_key
from services.results.outcomes.nats import NatsOutcomeConsumer, RecordingLimits
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.settings import ResultsSettings


def make_outcome_consumer(
    settings: ResultsSettings, nats: Client, record_outcomes: RecordOutcomes
) -> NatsOutcomeConsumer:
    return NatsOutcomeConsumer(
        puller=Puller(jetstream=JetStream(connection=nats), spec=outcome_consumer(settings.ack_wait_seconds)),
        record=record_outcomes.record,
        limits=RecordingLimits(
            outcomes=settings.batch_outcomes,
            linger_seconds=settings.linger_seconds,
        ),
        shard_key=usable_shard_key(settings.shard_key),
    )
