"""Joins the parts of rollouts: their tasks, which uploads store, and the orders of runs over them."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import NoReturn
from uuid import uuid4

from services.common.grpc.server import Registration
from services.common.process import usable_dispatch_proof_key
from services.scheduler.postgres import Connections
from services.scheduler.rollouts import grpc_api
from services.scheduler.rollouts.artifacts import grpc_api as artifacts_grpc_api
from services.scheduler.rollouts.artifacts.delete_artifacts import DeleteArtifacts, DeleteArtifactsWithoutRun
from services.scheduler.rollouts.artifacts.nats import NatsArtifacts
from services.scheduler.rollouts.artifacts.postgres import PostgresArtifacts
from services.scheduler.rollouts.artifacts.show_artifacts import ShowArtifacts
from services.scheduler.rollouts.artifacts.store_artifact import StoreArtifact
from services.scheduler.rollouts.budgets.nats import NatsBudgets
from services.scheduler.rollouts.budgets.postgres import PostgresBudgets
from services.scheduler.rollouts.budgets.record_budget_use import RecordBudgetUse
from services.scheduler.rollouts.postgres import PostgresRolloutsOrders
from services.scheduler.rollouts.processes.archive_checks import PROGRAM
from services.scheduler.rollouts.show_orders import ShowOrders
from services.scheduler.rollouts.submit_rollouts import SubmitRollouts
from services.scheduler.rollouts.yaml_suite import write_suite
from services.scheduler.runs.wiring import RunParts
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.uploads.ports import ObjectStore
from services.scheduler.uploads.task_sets.add_task_set import AddTaskSet
from services.scheduler.uploads.task_sets.delete_unused_tasks import DeleteUnusedTasks
from services.scheduler.uploads.task_sets.find_tasks import FindBundle, FindStoredTasks
from services.scheduler.uploads.task_sets.nats import NatsBundleAnswers
from services.scheduler.uploads.task_sets.postgres import PostgresTaskSets
from services.scheduler.uploads.task_sets.proto import tasks_from_bytes
from services.scheduler.uploads.wiring import UploadParts


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutParts:
    """`bundles`, `artifacts` and `budgets` run in every scheduler, the two that delete in the leader."""

    apis: Mapping[str, Registration]
    bundles: NatsBundleAnswers
    artifacts: NatsArtifacts
    budgets: NatsBudgets
    delete_unused_tasks: DeleteUnusedTasks
    delete_artifacts: DeleteArtifactsWithoutRun

    def leader_loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        return {
            "delete unused tasks": self.delete_unused_tasks.lead(),
            "delete artifacts without run": self.delete_artifacts.lead(),
        }

    def loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        return {
            "answer for files of tasks": self.bundles.answer(),
            "store artifacts": self.artifacts.answer(),
            "record used budgets": self.budgets.answer(),
        }


def make_rollouts(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    suites: SuiteParts,
    uploads: UploadParts,
    runs: RunParts,
) -> RolloutParts:
    objects = uploads.objects
    orders = PostgresRolloutsOrders(session=connections.postgres, runs=runs.store)
    read_orders = PostgresRolloutsOrders(session=connections.reads, runs=runs.store)
    sets = PostgresTaskSets(session=connections.postgres, storage=uploads.storage, clock=connections.clock)
    add_tasks = _make_adding(settings, uploads, sets)
    submit = SubmitRollouts(
        add_tasks=add_tasks,
        find_tasks=FindStoredTasks(sets=sets, objects=objects, read=tasks_from_bytes),
        write=write_suite,
        suites=suites.add,
        orders=orders,
        submit_run=runs.submit,
        limits=runs.limits,
    )
    artifacts = PostgresArtifacts(session=connections.postgres, clock=connections.clock)
    read_artifacts = PostgresArtifacts(session=connections.reads, clock=connections.clock)
    api = grpc_api.GrpcRolloutApi(
        add_tasks=add_tasks,
        submit=submit,
        show_run=runs.reads.show_run,
        orders=ShowOrders(orders=read_orders, list_runs=runs.reads.list_runs),
    )
    return RolloutParts(
        apis={
            grpc_api.SERVICE_NAME: api.register,
            artifacts_grpc_api.SERVICE_NAME: artifacts_grpc_api.GrpcArtifactApi(
                show_artifacts=ShowArtifacts(artifacts=read_artifacts, objects=objects)
            ).register,
        },
        artifacts=_make_artifacts(settings, connections, uploads, artifacts),
        budgets=_make_budgets(settings, connections),
        bundles=NatsBundleAnswers(
            connection=connections.jetstream.connection, bundles=FindBundle(sets=sets, objects=objects)
        ),
        delete_unused_tasks=DeleteUnusedTasks(sets=sets, clock=connections.clock),
        delete_artifacts=DeleteArtifactsWithoutRun(artifacts=artifacts),
    )


def make_artifact_deletion(connections: Connections, objects: ObjectStore) -> DeleteArtifacts:
    artifacts = PostgresArtifacts(session=connections.postgres, clock=connections.clock)
    return DeleteArtifacts(artifacts=artifacts, objects=objects)


def _make_artifacts(
    settings: SchedulerSettings, connections: Connections, uploads: UploadParts, artifacts: PostgresArtifacts
) -> NatsArtifacts:
    store_artifact = StoreArtifact(
        artifacts=artifacts, objects=uploads.objects, storage=uploads.storage, clock=connections.clock
    )
    return NatsArtifacts(
        connection=connections.jetstream.connection,
        store_artifact=store_artifact,
        dispatch_proof_key=usable_dispatch_proof_key(settings.dispatch_proof_key),
    )


def _make_budgets(settings: SchedulerSettings, connections: Connections) -> NatsBudgets:
    stored = PostgresBudgets(session=connections.postgres, clock=connections.clock)
    return NatsBudgets(
        connection=connections.jetstream.connection,
        recording=RecordBudgetUse(budgets=stored),
        dispatch_proof_key=usable_dispatch_proof_key(settings.dispatch_proof_key),
    )


def _make_adding(settings: SchedulerSettings, uploads: UploadParts, sets: PostgresTaskSets) -> AddTaskSet:
    objects = uploads.objects
    return AddTaskSet(
        program=PROGRAM,
        max_bytes=settings.max_tasks_bytes,
        sets=sets,
        objects=objects,
        uploads=uploads.uploads,
        storage=uploads.storage,
        new_id=lambda: uuid4().hex,
    )
