"""Joins the parts of rollouts."""

from services.scheduler.postgres import Connections
from services.scheduler.rollouts.grpc_api import GrpcRolloutApi
from services.scheduler.rollouts.postgres import PostgresRolloutsOrders
from services.scheduler.rollouts.show_orders import ShowOrders
from services.scheduler.rollouts.submit_rollouts import SubmitRollouts
from services.scheduler.rollouts.yaml_suite import read_order, write_suite
from services.scheduler.runs.wiring import RunParts
from services.scheduler.suites.wiring import SuiteParts


def make_rollout_api(connections: Connections, *, suites: SuiteParts, runs: RunParts) -> GrpcRolloutApi:
    orders = PostgresRolloutsOrders(connections.postgres)
    submit = SubmitRollouts(
        read=read_order, write=write_suite, suites=suites.api.add, orders=orders, submitting=runs.submit
    )
    show = ShowOrders(orders=orders, listing=runs.reads.list_runs)
    return GrpcRolloutApi(submit=submit, show=runs.reads.show_run, orders=show)
