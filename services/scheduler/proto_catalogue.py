"""Suites and workers on the wire."""

from proctor.v1 import model_pb2, scheduler_service_pb2
from services.scheduler.pools.pool import EngineLoad, Worker
from services.scheduler.proto_words import OUTPUT_TYPES
from services.scheduler.runs.proto_runs import time_to_proto
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.suite import SuiteSummary, TaskSummary


def suite_to_proto(suite: SuiteSummary | BrokenSuite) -> scheduler_service_pb2.SuiteInfo:
    if isinstance(suite, BrokenSuite):
        return scheduler_service_pb2.SuiteInfo(
            suite=suite.name, problem=suite.problem, version=suite.version, digest=suite.digest
        )
    return scheduler_service_pb2.SuiteInfo(
        suite=suite.name,
        description=suite.description,
        tasks=[_task_to_proto(task) for task in suite.tasks],
        version=suite.version,
        digest=suite.digest,
    )


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


def _task_to_proto(task: TaskSummary) -> scheduler_service_pb2.TaskInfo:
    return scheduler_service_pb2.TaskInfo(
        task=task.name,
        version=task.version,
        output_type=OUTPUT_TYPES[task.output_type],
        metrics=task.metrics,
        dataset=task.dataset,
    )
