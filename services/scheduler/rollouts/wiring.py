"""Joins the parts of rollouts."""

from services.scheduler.rollouts.grpc_api import GrpcRolloutApi
from services.scheduler.rollouts.submit_rollouts import SubmitRollouts
from services.scheduler.rollouts.yaml_suite import read_order, write_suite
from services.scheduler.runs.wiring import RunParts
from services.scheduler.suites.wiring import SuiteParts


def make_rollout_api(suites: SuiteParts, runs: RunParts) -> GrpcRolloutApi:
    submit = SubmitRollouts(read=read_order, write=write_suite, suites=suites.api.add, submitting=runs.submit)
    return GrpcRolloutApi(submit=submit, show=runs.show)
