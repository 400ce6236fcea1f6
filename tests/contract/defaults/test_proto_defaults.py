"""Comments of the contracts state the value of a field that is not set, and the services use that value."""

import re
from collections.abc import Mapping

import pytest

from proctor.v1 import run_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1.rollout_pb2 import RolloutAgent as RolloutAgentMessage
from proctor.v1.rollout_service_pb2 import SubmitRolloutsRequest
from proctor.values.generation import DEFAULT_MAX_TOKENS
from proctor.values.names.user import LOCAL_USER
from proctor.values.priority import default_priority
from proctor.values.providers.pools_file import MAX_MODEL_CHARACTERS
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.rollout import (
    MAX_COMMAND_SECONDS,
    MAX_MODELS,
    MAX_PARALLEL,
    MAX_STEPS,
    MAX_TOKENS,
    RolloutAgent,
)
from proctor.values.run import (
    LIMIT_BOUNDS,
    MAX_HISTORY_DAYS,
    MAX_LEADERBOARD_MODELS,
    MAX_WINDOW_SECONDS,
    MIN_WINDOW_SECONDS,
)
from proctor.values.sample import LAST_PREVIEWED_ROW, MAX_FEWSHOT
from services.common.requests import request_fields
from services.results.answers import list_outcomes, list_side_by_side
from services.results.comparison import list_flips
from services.results.export.exported_run import MissingAnswer
from services.results.leaderboard import list_history, rank_models
from services.results.outcomes import list_missing
from services.results.runs.proto import plan_from_proto
from services.results.statistics.metric_names import ACCURACY, SCORE, metric_named
from services.scheduler.batches import grpc_api as batches
from services.scheduler.rollouts import grpc_api as rollouts
from services.scheduler.rollouts.rollouts_submission import MAX_COMMAND_CHARACTERS, MAX_GROUP_CHARACTERS
from services.scheduler.runs import grpc_queue_api
from services.scheduler.runs.admission.run_slots import MIN_RUN_TIME
from services.scheduler.runs.orders.proto import order_from_proto
from services.scheduler.uploads import grpc_api as uploads
from services.worker.execution.outcome_batcher import OutcomeBatchLimits
from tests.contract.defaults.stated import absences, comments

COMMON = request_fields.DEFAULT_PAGE_SIZE, request_fields.MAX_PAGE_SIZE
# What 0 stands for in each number, and the most.
NUMBERS: Mapping[str, tuple[int, int]] = {
    "CountRequestResponse.limit": (0, 0),
    "ListHistoryRequest.days": (list_history.DEFAULT_DAYS, MAX_HISTORY_DAYS),
    "ListHistoryRequest.page_size": (list_history.DEFAULT_PER_PAGE, list_history.MAX_PER_PAGE),
    "GetLeaderboardRequest.max_entries": (rank_models.DEFAULT_ENTRIES, MAX_LEADERBOARD_MODELS),
    "GetQueueRequest.page_size": (grpc_queue_api.DEFAULT_PAGE_SIZE, request_fields.MAX_PAGE_SIZE),
    "ListBatchesRequest.page_size": (batches.DEFAULT_PAGE_SIZE, batches.MAX_PAGE_SIZE),
    "ListChangesRequest.page_size": COMMON,
    "ListDatasetsRequest.page_size": (uploads.DEFAULT_PAGE_SIZE, request_fields.MAX_PAGE_SIZE),
    "ListFilesRequest.page_size": (uploads.DEFAULT_PAGE_SIZE, uploads.MAX_PAGE_SIZE),
    "ListFlipsRequest.page_size": (list_flips.DEFAULT_PER_PAGE, list_flips.MAX_PER_PAGE),
    "ListMarkChangesRequest.page_size": COMMON,
    "ListMissingRequest.page_size": (list_missing.MAX_PER_PAGE, list_missing.MAX_PER_PAGE),
    "ListOutcomesRequest.page_size": (list_outcomes.DEFAULT_PER_PAGE, list_outcomes.MAX_PER_PAGE),
    "ListRolloutsOrdersRequest.page_size": (request_fields.DEFAULT_PAGE_SIZE, rollouts.MAX_PAGE_SIZE),
    "ListRunsRequest.page_size": COMMON,
    "ListSideBySideRequest.page_size": (list_side_by_side.DEFAULT_PER_PAGE, list_side_by_side.MAX_PER_PAGE),
    "PreviewDatasetRequest.row_count": (uploads.DEFAULT_ROWS, uploads.MAX_ROWS),
}
AGENT = rollouts.agent_from_proto(RolloutAgentMessage())
ORDER = order_from_proto(run_pb2.RunOrder(suite="glue", model="vllm/starter"))
DATASET_ORDER = order_from_proto(run_pb2.RunOrder(dataset_id="ds_1", model="vllm/starter"))
ROLLOUTS = rollouts.submission_from_proto(SubmitRolloutsRequest(suite="mine", models=["vllm/starter"]))
PLAN = plan_from_proto(run_record_pb2.OpenRunRequest())
LOCAL = f'empty means "{LOCAL_USER}".'
# The sentence of other fields, with the value that the code takes.
VALUES: Mapping[str, str] = {
    "AgentKind.AGENT_KIND_UNSPECIFIED": f"The default of an order: {AGENT.kind}.",
    "ListHistoryRequest.metric": f"empty means {ACCURACY}.",
    "GetLeaderboardRequest.metric": f"({metric_named('', ['acc', SCORE])} over the tasks that have it; "
    f'{metric_named("", [SCORE])} where none has), "score" (the mean of each task\'s main metric) or any '
    f"metric of the benchmark; empty means {ACCURACY}.",
    "OpenRunRequest.max_failed_share": f"unset means {PLAN.max_failed_share:g}.",
    "SubmitRolloutsRequest.agent": f"unset fields use their defaults: {AGENT.kind}, {AGENT.max_steps} steps, "
    f"{AGENT.max_tokens:,} tokens, {AGENT.command_seconds:g} seconds a command.",
    "SubmitRolloutsRequest.rollouts": f"unset means {ROLLOUTS.rollouts}.",
    "Priority.PRIORITY_UNSPECIFIED": f"The default: {ORDER.priority} for a suite, {DATASET_ORDER.priority} "
    "for a data set.",
    "WorkShard.use_engine_defaults": "Unset parameters use the engine's defaults, as for rows of a data set.",
    "GenerationParams": f"What is still unset: a suite is greedy, with at most {DEFAULT_MAX_TOKENS} tokens, "
    "and uses the engine's default for the rest; a data set uses the value of its row, then the engine's "
    "default.",
    "ExportRunRequest.missing_code": f'empty means "{MissingAnswer().code}".',
    "ExportRunRequest.missing_message": f'empty means "{MissingAnswer().message}".',
    "Run.user": f'"{LOCAL_USER}" by default.',
    "RunOrder.rollouts": f"unset means {ORDER.rollouts}.",
    **dict.fromkeys(
        (
            f"{message}.user"
            for message in (
                *("CountRequestRequest", "CreateBatchRequest", "DatasetHeader", "EstimateRunRequest"),
                *("FileHeader", "MarkAnswersRequest", "SubmitRolloutsRequest", "SubmitRunRequest"),
                *("TasksHeader", "AddSuiteRequest"),
            )
        ),
        LOCAL,
    ),
}
# The bounds that the comment of a field states.
BOUNDS: Mapping[str, str] = {
    "RunOrder.num_fewshot": f"0 to {MAX_FEWSHOT};",
    "RunOrder.rollouts": f"1 to {MAX_ROLLOUTS};",
    "RunOrder.model": f"At most {MAX_MODEL_CHARACTERS} characters.",
    "RunOrder.completion_window_seconds": f"{MIN_WINDOW_SECONDS:,} to {MAX_WINDOW_SECONDS:,},",
    "SubmitRolloutsRequest.models": f"1 to {MAX_MODELS},",
    "SubmitRolloutsRequest.rollouts": f"1 to {MAX_ROLLOUTS};",
    "SubmitRolloutsRequest.parallel": f"1 to {MAX_PARALLEL:,};",
    "SubmitRolloutsRequest.parallel_group": f"at most {MAX_GROUP_CHARACTERS} characters",
    "RolloutAgent.max_steps": f"1 to {MAX_STEPS:,}.",
    "RolloutAgent.max_tokens": f"1 to {MAX_TOKENS:,}.",
    "RolloutAgent.command_seconds": f"at most {MAX_COMMAND_SECONDS:,.0f}.",
    "RolloutAgent.command": f"At most {MAX_COMMAND_CHARACTERS:,} characters",
    "QueueLimits.max_running_runs": f"1 to {LIMIT_BOUNDS['max_running_runs'][1]:,}.",
    "QueueLimits.max_pending_runs_per_user": f"1 to {LIMIT_BOUNDS['max_pending_runs_per_user'][1]:,}.",
    "QueueLimits.max_requests_per_minute": f"1 to {LIMIT_BOUNDS['max_requests_per_minute'][1]:,}.",
    "QueueLimits.max_stored_files_per_user": f"1 to {LIMIT_BOUNDS['max_stored_files_per_user'][1]:,}:",
    "QueueLimits.min_run_time": f"less than {MIN_RUN_TIME.seconds} seconds counts as {MIN_RUN_TIME.seconds}.",
    "ShowSampleRequest.doc_id": f"0 to {LAST_PREVIEWED_ROW:,}.",
    "OutcomeBatch.outcomes": f"at most {OutcomeBatchLimits().outcomes},",
}
# Fields without a value that leave something as it is. No number and no name is in such a sentence.
NOTHING = re.compile(
    r"(?:[Uu]nset|[Ee]mpty|0) means (?:"
    r"(?:all|any|none|no limit|no scoring|never|for ever|unlimited|unranked|every metric of any task)\b"
    r"|(?:all (?:rows|tasks)|as many as|at the first|this order only|the caller)\b"
    r"|that answers are not scored"
    r"|that the digest is computed from the content|a cluster of its own|those of the task"
    r"|(?:each|the) task's|the (?:choices themselves|worker's own|pool's own|run time limit|price of prompt)"
    r")"
)
STATED = absences()


@pytest.mark.parametrize("field", [name for name, text in STATED.items() if re.search(r"0 means \d", text)])
def test_a_number_that_is_left_out_is_the_one_that_is_stated(field: str) -> None:
    usual, most = NUMBERS[field]
    assert f"1 to {most}; 0 means {usual}." in STATED[field]


@pytest.mark.parametrize("field", BOUNDS)
def test_a_bound_is_the_one_that_is_stated(field: str) -> None:
    assert BOUNDS[field] in dict(comments())[field]


@pytest.mark.parametrize("field", VALUES)
def test_a_value_that_is_left_out_is_the_one_that_is_stated(field: str) -> None:
    assert VALUES[field] in STATED[field]


@pytest.mark.parametrize("field", STATED)
def test_every_default_that_is_stated_is_held_to_the_code(field: str) -> None:
    """A sentence with a value needs an entry above; any other says that nothing is set."""
    if field not in VALUES and field not in NUMBERS:
        assert NOTHING.search(STATED[field]), STATED[field]
        assert not re.search(r'means (?:\d*[1-9]|")', STATED[field])


def test_the_entries_are_of_fields_that_there_are() -> None:
    assert {*NUMBERS, *VALUES} - set(STATED) == set()


def test_an_order_that_sets_nothing_limits_nothing() -> None:
    """What is stated as all, as no limit and as the default of others."""
    assert (ORDER.tasks, ORDER.limit, ORDER.num_fewshot, ORDER.max_cost) == ((), None, None, None)
    assert (DATASET_ORDER.metrics, DATASET_ORDER.completion_window_seconds) == ((), None)
    assert (ROLLOUTS.max_cost, ROLLOUTS.parallel, ROLLOUTS.parallel_group) == (None, None, "")
    assert (PLAN.facts.limit, PLAN.facts.num_fewshot, PLAN.facts.price) == (None, None, None)


def test_values_are_their_own_defaults() -> None:
    assert (AGENT, ROLLOUTS.agent) == (RolloutAgent(), RolloutAgent())
    assert ROLLOUTS.user == LOCAL_USER
    assert default_priority(is_background=True) is DATASET_ORDER.priority


def test_a_shard_without_parameters_is_decoded_as_stated() -> None:
    comment = dict(comments())["WorkShard.use_engine_defaults"]
    assert f"decoding is greedy with at most {DEFAULT_MAX_TOKENS} tokens." in comment
