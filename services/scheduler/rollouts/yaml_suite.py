"""The suite of a set of tasks: one YAML text, and a file with a row for each task."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import yaml

from proctor.values.agents.built_in import agent_in_words
from proctor.values.metrics.catalogue import REWARD_UNSUSPECTED, UNSUSPECTED
from proctor.values.rollout import RolloutAgent, RolloutSpec, RolloutTask
from proctor.wire.values import ROLLOUT_SPEC
from services.scheduler.rollouts.tasks.errors import InvalidTask
from services.scheduler.rollouts.tasks.file_task_sets import read_archive
from services.scheduler.rollouts.tasks.tb_meta_task import OVERRIDES, Overrides, read_overrides
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.suite import ASKS_NO_MODEL

_ROWS, _COLUMN = "rollouts.jsonl", "rollout"
_VERSION = "1"
_METRICS = ("pass@1", "reward", UNSUSPECTED, REWARD_UNSUSPECTED)
_MAX_TOKENS = 4096


def read_tasks(archive: BinaryIO, name: str, overrides_json: Mapping[str, str]) -> Sequence[RolloutTask]:
    """Raises TaskError. `name` is for messages."""
    overrides = {folder: _overrides(folder, text) for folder, text in overrides_json.items()}
    return read_archive(archive, name, overrides).sound()


def _overrides(folder: str, text: str) -> Overrides:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTask(folder, f"{OVERRIDES} of the order", "it is not JSON.") from error
    if not isinstance(values, dict):
        raise InvalidTask(folder, f"{OVERRIDES} of the order", "it must be a JSON object.")
    return read_overrides(folder, f"{OVERRIDES} of the order", values)


def write_suite(name: str, tasks: Sequence[RolloutTask], agent: RolloutAgent) -> SuiteDocument:
    """The same tasks and the same agent give the same text."""
    declared = {
        "task": name,
        "version": _VERSION,
        "dataset": {"file": _ROWS},
        "output_type": "generate_until",
        "doc_to_text": "instruction",
        "doc_to_target": "expected",
        "unsafe_code": True,
        "rollout": _COLUMN,
        "generation_kwargs": {"until": [], "max_gen_toks": _MAX_TOKENS},
        "metric_list": [{"metric": name} for name in _METRICS],
        "metadata": {
            "agent": agent_in_words(agent),
            "max_steps": agent.max_steps,
            "max_tokens": agent.max_tokens,
            **({ASKS_NO_MODEL: True} if agent.kind.asks_no_model else {}),
        },
    }
    rows = "".join(f"{json.dumps(_row(task, agent))}\n" for task in tasks)
    text = yaml.safe_dump(declared, sort_keys=False, allow_unicode=True)
    return SuiteDocument(text, f"{name}.yaml", {_ROWS: rows.encode()})


def _row(task: RolloutTask, agent: RolloutAgent) -> Mapping[str, str]:
    message = ROLLOUT_SPEC.to_proto(RolloutSpec(task, agent)).SerializeToString(deterministic=True)
    return {
        "task_id": task.task_id,
        "instruction": task.instruction,
        "expected": "every test passes",
        _COLUMN: base64.b64encode(message).decode(),
    }
