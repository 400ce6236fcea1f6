"""Workers and models as messages."""

from datetime import UTC

from google.protobuf.message import Message

from proctor.v1 import model_pb2, scheduler_service_pb2, work_messages_pb2
from services.scheduler.runs.lifecycle.proto import time_to_proto
from services.scheduler.workers.listed_models import ListedModel, ModelList, ModelSource
from services.scheduler.workers.pool import Aliases
from services.scheduler.workers.worker import EngineLoad, Worker


def model_from_proto(told: model_pb2.ModelInfo) -> ListedModel:
    return ListedModel(
        name=told.model,
        pool=told.pool,
        is_loaded=told.is_loaded,
        context_tokens=_count(told, "context_tokens"),
        size_bytes=_count(told, "size_bytes"),
        memory_bytes=_count(told, "memory_bytes"),
        quantization=told.quantization,
        capabilities=_capabilities(told.capabilities) if told.HasField("capabilities") else None,
        problem=told.problem,
    )


def models_to_proto(listed: ModelList, aliases: Aliases) -> scheduler_service_pb2.ListModelsResponse:
    providers = {source.provider for source in listed.sources}
    return scheduler_service_pb2.ListModelsResponse(
        models=[_model_to_proto(model) for model in listed.models],
        sources=[_source_to_proto(source) for source in listed.sources],
        aliases={alias: model for alias, model in aliases.items() if model.partition("/")[0] in providers},
    )


def _model_to_proto(model: ListedModel) -> model_pb2.ModelInfo:
    can = model.capabilities
    return model_pb2.ModelInfo(
        model=model.name,
        pool=model.pool,
        is_loaded=model.is_loaded,
        context_tokens=model.context_tokens,
        size_bytes=model.size_bytes,
        memory_bytes=model.memory_bytes,
        quantization=model.quantization,
        capabilities=None if can is None else model_pb2.ModelCapabilities(**dict.fromkeys(can, True)),
        problem=model.problem,
    )


def _source_to_proto(source: ModelSource) -> scheduler_service_pb2.ModelSource:
    return scheduler_service_pb2.ModelSource(
        pool=source.pool,
        provider=source.provider,
        engine=source.engine,
        problem=source.problem,
        listed_at=time_to_proto(source.listed_at),
    )


def _capabilities(told: model_pb2.ModelCapabilities) -> frozenset[str]:
    return frozenset(field.name for field, has in told.ListFields() if has)


def _count(message: Message, field: str) -> int | None:
    return int(getattr(message, field)) if message.HasField(field) else None


def worker_to_proto(worker: Worker) -> scheduler_service_pb2.WorkerInfo:
    return scheduler_service_pb2.WorkerInfo(
        worker_id=worker.worker_id,
        pool=worker.pool,
        engine=worker.engine,
        loaded_model=worker.loaded_model,
        in_flight=worker.in_flight,
        concurrency=worker.concurrency,
        seen_at=time_to_proto(worker.sent_at),
        condition=worker.condition,
        provider=worker.provider,
        load=_load_to_proto(worker.load) if worker.load else None,
        cannot_load=worker.cannot_load,
        loading_model=worker.loading_model,
        ready_models=worker.ready_models,
    )


def _load_to_proto(load: EngineLoad) -> model_pb2.EngineLoad:
    return model_pb2.EngineLoad(
        running_requests=load.running_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_usage=load.kv_cache_usage,
        prefix_cache_queries=load.prefix_cache_queries,
        prefix_cache_hits=load.prefix_cache_hits,
        generated_tokens=load.generated_tokens,
    )


def worker_from_proto(status: work_messages_pb2.WorkerStatus) -> Worker:
    return Worker(
        worker_id=status.worker_id,
        pool=status.pool,
        engine=status.engine,
        provider=status.provider,
        models=tuple(status.models),
        loaded_model=status.loaded_model,
        in_flight=status.in_flight,
        concurrency=status.concurrency,
        condition=status.condition,
        sent_at=status.sent_at.ToDatetime(tzinfo=UTC),
        cannot_load=dict(status.cannot_load),
        refused_runs=dict(status.refused_runs),
        loading_model=status.loading_model,
        ready_models=tuple(status.ready_models),
        load=load_from_proto(status.load) if status.HasField("load") else None,
        environment=dict(status.environment),
        throttled_servers={
            server: until.ToDatetime(tzinfo=UTC) for server, until in status.throttled_servers.items()
        },
    )


def load_from_proto(load: model_pb2.EngineLoad) -> EngineLoad:
    return EngineLoad(
        running_requests=load.running_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_usage=load.kv_cache_usage,
        prefix_cache_queries=load.prefix_cache_queries,
        prefix_cache_hits=load.prefix_cache_hits,
        generated_tokens=load.generated_tokens,
    )
