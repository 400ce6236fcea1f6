"""Workers and models as messages."""

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import work_messages_pb2
from proctor.values.names.model_name import provider_of
from proctor.wire.convert import Codec
from proctor.wire.values import MODEL
from proctor.wire.well_known import time_to_proto
from services.scheduler.workers.list_models import ModelList, ModelSource
from services.scheduler.workers.model_names import Aliases
from services.scheduler.workers.worker import RefusedRun, Worker

_REFUSED = Codec(RefusedRun, work_messages_pb2.RefusedRun)
HEARTBEAT = Codec(Worker, work_messages_pb2.WorkerStatus, nested=(_REFUSED,))
WORKER = Codec(
    Worker,
    scheduler_pb2.WorkerInfo,
    names={"sent_at": "seen_at"},
    unpaired={
        "models",
        "refusals",
        "environment",
        "throttled_servers",
        "pod",
        "rollouts_in_flight",
        "rollout_slots",
    },
)


def models_to_proto(listed: ModelList, aliases: Aliases) -> scheduler_pb2.ListModelsResponse:
    providers = {source.provider for source in listed.sources}
    return scheduler_pb2.ListModelsResponse(
        models=[MODEL.to_proto(model) for model in listed.models],
        sources=[_source_to_proto(source) for source in listed.sources],
        aliases={alias: model for alias, model in aliases.items() if provider_of(model) in providers},
    )


def _source_to_proto(source: ModelSource) -> scheduler_pb2.ModelSource:
    return scheduler_pb2.ModelSource(
        pool=source.pool,
        provider=source.provider,
        engine=source.engine,
        problem=source.problem,
        listed_at=time_to_proto(source.listed_at),
        api_key_env=source.api_key_env,
        has_key=source.has_key,
    )
