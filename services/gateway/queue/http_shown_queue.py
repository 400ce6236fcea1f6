"""The queue on its way out and changes of limits on their way in, between the contracts and HTTP."""

from datetime import timedelta

from proctor.v1 import model_pb2, run_pb2, scheduler_service_pb2
from proctor.v1 import queue_service_pb2 as queue_pb2
from services.gateway.proto_words import PRIORITIES, board_of, moment, priority_word, state_word
from services.gateway.queue.http_queue_bodies import (
    LimitChanges,
    Limits,
    Queue,
    QueuedJob,
    QueueLoad,
    QueueUser,
    QueueWorker,
)
from services.gateway.runs.http_job_progress import job_progress, job_wait


def shown_queue(queue: queue_pb2.GetQueueResponse) -> Queue:
    return Queue(
        running=[_job(run) for run in queue.running],
        waiting=[_job(run) for run in queue.waiting],
        waiting_total=queue.waiting_total,
        paused=[_job(run) for run in queue.paused],
        workers=[_worker(worker) for worker in queue.workers],
        limits=shown_limits(queue.limits),
        users=[QueueUser(user=each.user, running=each.running, pending=each.pending) for each in queue.users],
    )


def shown_limits(limits: queue_pb2.QueueLimits) -> Limits:
    return Limits(
        max_running_runs=limits.max_running_runs,
        max_pending_runs_per_user=limits.max_pending_runs_per_user,
        max_requests_per_minute=limits.max_requests_per_minute,
        run_time_limit_seconds=limits.run_time_limit.ToTimedelta().total_seconds(),
        min_run_time_seconds=limits.min_run_time.ToTimedelta().total_seconds(),
        highest_priorities={each.user: priority_word(each.highest) for each in limits.priorities},
    )


# Where the contract calls a limit otherwise.
_CONTRACT_NAMES = {
    "run_time_limit_seconds": "run_time_limit",
    "min_run_time_seconds": "min_run_time",
    "highest_priorities": "priorities",
}


def wanted_limits(changes: LimitChanges) -> queue_pb2.SetLimitsRequest:
    nulls = [name for name in sorted(changes.model_fields_set) if getattr(changes, name) is None]
    reset = [_CONTRACT_NAMES.get(name, name) for name in nulls]
    return queue_pb2.SetLimitsRequest(limits=_changed_limits(changes), reset=reset)


def _changed_limits(changes: LimitChanges) -> queue_pb2.QueueLimits:
    wanted = queue_pb2.QueueLimits(
        max_running_runs=changes.max_running_runs,
        max_pending_runs_per_user=changes.max_pending_runs_per_user,
        max_requests_per_minute=changes.max_requests_per_minute,
        priorities=[
            queue_pb2.UserPriority(user=user, highest=PRIORITIES[name])
            for user, name in (changes.highest_priorities or {}).items()
        ],
    )
    if changes.run_time_limit_seconds is not None:
        wanted.run_time_limit.FromTimedelta(timedelta(seconds=changes.run_time_limit_seconds))
    if changes.min_run_time_seconds is not None:
        wanted.min_run_time.FromTimedelta(timedelta(seconds=changes.min_run_time_seconds))
    return wanted


def _job(run: run_pb2.Run) -> QueuedJob:
    progress = run.progress
    return QueuedJob(
        job_id=run.run_id,
        user=run.user,
        model_name=run.order.model,
        benchmark_suite=board_of(run.order),
        project_id=run.order.project_id,
        priority=priority_word(run.order.priority),
        status=state_word(run.state),
        created_at=moment(run.created_at),
        started_at=moment(run.started_at),
        deadline=moment(run.deadline),
        pool=run.pool,
        progress=job_progress(progress),
        samples_per_second=progress.samples_per_second if progress.HasField("samples_per_second") else None,
        eta_seconds=progress.eta_seconds if progress.HasField("eta_seconds") else None,
        wait=job_wait(run),
    )


def _worker(worker: scheduler_service_pb2.WorkerInfo) -> QueueWorker:
    return QueueWorker(
        worker_id=worker.worker_id,
        pool=worker.pool,
        provider=worker.provider,
        engine=worker.engine,
        condition=worker.condition,
        loaded_model=worker.loaded_model,
        in_flight=worker.in_flight,
        concurrency=worker.concurrency,
        seen_at=moment(worker.seen_at),
        load=_load(worker.load) if worker.HasField("load") else None,
        cannot_load=dict(worker.cannot_load),
    )


def _load(load: model_pb2.EngineLoad) -> QueueLoad:
    queries = load.prefix_cache_queries
    return QueueLoad(
        running_requests=load.running_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_usage=load.kv_cache_usage,
        prefix_hit_rate=load.prefix_cache_hits / queries if queries else None,
    )
