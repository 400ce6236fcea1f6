"""What makes two runs ask the same of a sample, beside the sample itself."""

import hashlib
import json
from dataclasses import asdict

from services.scheduler.runs.run import Run
from services.scheduler.runs.run_order import ScoringMethod
from services.scheduler.shards.planned_task import PlannedTask, merged_params
from services.scheduler.suites.suite import OutputType


def request_digest(run: Run, task: PlannedTask) -> bytes:
    """SHA-256 over model, server, parameters, stops, and how choices and prompts are put.

    Of no account: which pool asks, how many rollouts there are (an answer is one rollout's), and whether the
    answer streams. Choices that are weighed have no parameters of generation. What a row of a data set says
    itself is part of the sample; what neither says is the engine's.
    """
    order = run.order
    is_choice = task.output_type is OutputType.MULTIPLE_CHOICE
    method = run.scoring_method if is_choice else ScoringMethod.GENERATE
    is_weighed = method is ScoringMethod.LOGLIKELIHOOD
    request: dict[str, object] = {
        "model": order.model,
        "base_url": order.base_url,
        "scoring_method": method,
        "prompt_form": order.prompt_form,
        "truncation": order.truncation,
        "params": None if is_weighed else asdict(merged_params(order.params, task)),
        "stop": None if is_weighed else task.stop,
    }
    if order.dataset_id:
        request["use_engine_defaults"] = True
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()
