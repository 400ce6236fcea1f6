"""An order that sets only its model and its rows limits nothing and gets the defaults of the values."""

from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1.rollout_pb2 import RolloutAgent as RolloutAgentMessage
from proctor.v1.rollout_service_pb2 import SubmitRolloutsRequest
from proctor.values.names.user import LOCAL_USER
from proctor.values.priority import default_priority
from proctor.values.rollout import RolloutAgent
from services.results.runs.proto import plan_from_proto
from services.scheduler.rollouts import grpc_api as rollouts
from services.scheduler.runs.orders.proto import order_from_proto


def test_an_order_of_a_suite_has_no_limits() -> None:
    order = order_from_proto(run_pb2.RunOrder(suite="glue", model="vllm/starter"))
    assert (order.tasks, order.limit, order.num_fewshot, order.max_cost) == ((), None, None, None)
    assert order.priority is default_priority(is_background=False)


def test_an_order_of_a_data_set_is_in_the_background_and_scores_nothing() -> None:
    order = order_from_proto(run_pb2.RunOrder(dataset_id="ds_1", model="vllm/starter"))
    assert (order.metrics, order.completion_window_seconds) == ((), None)
    assert order.priority is default_priority(is_background=True)


def test_an_order_of_rollouts_has_the_usual_agent() -> None:
    order = rollouts.submission_from_proto(SubmitRolloutsRequest(suite="mine", models=["vllm/starter"]))
    assert (order.max_cost, order.parallel, order.parallel_group) == (None, None, "")
    assert (order.agent, order.user) == (RolloutAgent(), LOCAL_USER)
    assert rollouts.agent_from_proto(RolloutAgentMessage()) == RolloutAgent()


def test_the_plan_of_a_run_has_no_limits() -> None:
    plan = plan_from_proto(run_record_pb2.OpenRunRequest())
    assert (plan.facts.limit, plan.facts.num_fewshot, plan.facts.price) == (None, None, None)
