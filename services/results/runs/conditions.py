"""The conditions of an evaluation: what makes a figure beside the model. `CONDITIONS` lists all of them.

Leaderboards, comparisons and docs/reference/conditions.md follow that list.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from proctor.values.scoring import MetricUse, TaskScoring
from services.results.runs.run_plan import UNSPECIFIED, PlannedTask, RunPlan

# The value of what is not set.
NONE = "none"
# The value of what the log of an imported run does not tell. It differs from every value, also from itself.
UNKNOWN = "unknown"
# Values are shown in a line; longer ones are distinguished by their digest.
_MAX_CHARACTERS = 120
_DIGEST_CHARACTERS = 12


# A metric by name, and its options as words; "" for none.
MetricRule = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run as conditions are read from it. `environment`: what its engines reported."""

    plan: RunPlan
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EvaluatedTask:
    """A task of a run, by its index in the plan."""

    run: EvaluatedRun
    index: int

    @property
    def task(self) -> PlannedTask:
        return self.run.plan.tasks[self.index]

    @cached_property
    def request(self) -> Mapping[str, object]:
        """What its requests have beside the samples."""
        found: dict[str, object] = json.loads(self.task.provenance.request_json or "{}")
        return found


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition by its name in sentences, and how its value is read, as words.

    `usual`: the values that an order has unless it says otherwise; empty for any. `is_needed`: a run with
    another value is ranked only where that is asked for. `is_of_model`: it tells two runs of one model apart,
    and is no difference between two models. `follows`: conditions that change this one, which is not named
    beside them.
    """

    name: str
    meaning: str
    known: Callable[[EvaluatedTask], str]
    usual: tuple[str, ...] = ()
    is_needed: bool = False
    is_of_model: bool = False
    follows: tuple[str, ...] = ()

    def read(self, one: EvaluatedTask) -> str:
        """Its value, or `UNKNOWN`."""
        is_unknown = self.name in one.task.provenance.unknown_conditions
        return UNKNOWN if is_unknown else self.known(one)


def _requested(name: str) -> Callable[[EvaluatedTask], str]:
    return lambda one: _worded(one.request.get(name))


def _reported(name: str) -> Callable[[EvaluatedTask], str]:
    return lambda one: one.run.environment.get(name) or NONE


def _rollouts(plan: RunPlan) -> str:
    ordered = [count for count in plan.row_rollouts if count] or [plan.rollouts]
    return str(ordered[0]) if len(set(ordered)) == 1 else _worded(ordered)


def _shortened(digest: str) -> str:
    return digest[:_DIGEST_CHARACTERS] or NONE


def _dataset_metrics(one: EvaluatedTask) -> str:
    plan = one.run.plan
    return rules_in_words(metric_rules(plan)) if plan.facts.is_of_dataset else NONE


def _scoring_rules(one: EvaluatedTask) -> str:
    """The metrics of a data set stand in the order, and are a condition of their own."""
    return NONE if one.run.plan.facts.is_of_dataset else _digest(_rules(one.task.scoring))


def _rules(scoring: TaskScoring) -> object:
    uses = [(use.name, use.options_json) for use in scoring.metrics]
    rules = scoring.output_type, uses, scoring.filters_json, scoring.target_delimiter
    return (*rules, scoring.process_results, scoring.code_digest) if scoring.code_digest else rules


# Conditions that leaderboards and other conditions name.
IMPORTED_FROM = "imported from"
SUITE_VERSION = "suite version"
DEFINITION = "definition"
METRICS = "metric"
SHOTS = "shots"
LIMIT = "limit"
SCORING_METHOD = "scoring method"
MISSING_TASKS = "missing tasks"

CONDITIONS: Sequence[Condition] = (
    Condition(
        IMPORTED_FROM,
        "Tool whose log the answers and scores are from",
        lambda one: one.task.provenance.logged_by or NONE,
        usual=(NONE,),
        is_needed=True,
    ),
    Condition(
        SUITE_VERSION,
        "Version of a user's suite. The newest one is ranked",
        lambda one: str(one.run.plan.facts.suite_version),
    ),
    Condition(
        DEFINITION,
        "Digest of each task's definition: templates, rows, examples, metrics, filters, generation. "
        "That of the newest run is ranked",
        lambda one: _shortened(one.task.provenance.definition_digest),
        follows=(SUITE_VERSION,),
    ),
    Condition(
        "scoring rules",
        "Digest of the metrics with their options, the filters and the target delimiter",
        _scoring_rules,
        follows=(SUITE_VERSION,),
    ),
    Condition(
        METRICS,
        "Of a data set, whose order names them: the metric of the figure with its options",
        _dataset_metrics,
    ),
    Condition(
        SCORING_METHOD,
        "How choices are scored: loglikelihood, generate, constrained",
        lambda one: one.run.plan.scoring_method_of(one.index) or UNSPECIFIED,
    ),
    Condition(
        "choice instruction",
        "Version of the sentence that asks for a choice in words",
        _requested("choice_instruction"),
    ),
    Condition(SHOTS, "Examples in each prompt", lambda one: str(one.task.provenance.num_fewshot)),
    Condition(
        LIMIT,
        "First rows of each task only",
        lambda one: _worded(one.run.plan.facts.limit),
        usual=(NONE,),
        is_needed=True,
    ),
    Condition(
        "rows and prompts",
        "Digest of the samples: rows, prompts with their examples and system messages, choices, targets",
        lambda one: _shortened(one.task.provenance.samples_digest),
        follows=(SUITE_VERSION, DEFINITION, SHOTS, LIMIT),
    ),
    Condition(
        MISSING_TASKS,
        "Tasks of the suite that were not ordered",
        lambda one: ", ".join(one.run.plan.facts.missing_tasks) or NONE,
        usual=(NONE,),
        is_needed=True,
    ),
    Condition(
        "stand-in rows",
        "Tasks whose rows are not the complete official split",
        lambda one: (
            ", ".join(task.task for task in one.run.plan.tasks if task.provenance.is_stand_in) or NONE
        ),
        usual=(NONE,),
        is_needed=True,
    ),
    Condition(
        "prompt form",
        "Whether a text prompt is continued (completion) or sent as a user message (chat)",
        _requested("prompt_form"),
    ),
    Condition(
        "truncation",
        "Whether prompts that are too long are cut from the left",
        lambda one: "left" if one.run.plan.is_truncated_left else NONE,
        usual=(NONE,),
        is_needed=True,
    ),
    Condition(
        "reasoning",
        "Whether reasoning is scored with the answer (keep) or left out (separate)",
        lambda one: "keep" if one.task.scoring.keeps_reasoning else "separate",
        usual=("separate",),
    ),
    Condition(
        "rows left out",
        "Rows that the model was not ordered for",
        lambda one: _worded(one.run.plan.row_rollouts.count(0) or None),
        usual=(NONE,),
        is_needed=True,
    ),
    Condition(
        "rollouts",
        "Answers to each sample, or to each row in turn where they differ",
        lambda one: _rollouts(one.run.plan),
        usual=("1",),
    ),
    Condition(
        "temperature",
        "As the order or the task says; 0 is greedy",
        _requested("temperature"),
        usual=("0", NONE),
    ),
    Condition("top_p", "As the order or the task says", _requested("top_p"), usual=(NONE,)),
    Condition("top_k", "As ordered", _requested("top_k"), usual=(NONE,)),
    Condition("max_tokens", "Longest answer in tokens", _requested("max_tokens")),
    Condition("stop", "Texts that end an answer", _requested("stop")),
    Condition("seed", "Seed of the engine's sampler", _requested("seed"), usual=(NONE,)),
    Condition("repetition_penalty", "As ordered", _requested("repetition_penalty"), usual=(NONE,)),
    Condition(
        "context_tokens",
        "Context window, for engines that size it per request",
        _requested("context_tokens"),
        usual=(NONE,),
    ),
    Condition(
        "provider_params",
        "Parameters that are passed through to the provider",
        _requested("provider_params"),
        usual=(NONE,),
    ),
    Condition(
        "agent",
        "Of rollouts: the agent or its program with its version, its steps and its tokens; and whether "
        "tests judge in its sandbox",
        _requested("agent"),
    ),
    Condition(
        "chat template",
        "Digest of the engine's chat template, where it reports one",
        _reported("chat_template"),
        is_of_model=True,
    ),
    Condition(
        "reasoning parser",
        "vLLM's name of how reasoning is taken out of the answers to chats, where its worker names one",
        _reported("reasoning_parser"),
        is_of_model=True,
    ),
    Condition(
        "quantization",
        "Of the engine's weights, where it reports one",
        _reported("quantization"),
        is_of_model=True,
    ),
)


def values_of(run: EvaluatedRun) -> Mapping[str, str]:
    """The value of each condition over all tasks of a run."""
    evaluated = [EvaluatedTask(run, index) for index in range(len(run.plan.tasks))]
    return {
        condition.name: joined({one.task.task: condition.read(one) for one in evaluated})
        for condition in CONDITIONS
    }


@dataclass(frozen=True, slots=True)
class DifferingCondition:
    """A condition in which runs differ, with its value in each, over the tasks where they do; () for all."""

    name: str
    values: tuple[str, ...]
    tasks: tuple[str, ...] = ()


def differing_conditions(runs: Sequence[EvaluatedRun], tasks: Sequence[str]) -> list[DifferingCondition]:
    """Every condition in which runs differ on tasks that all of them have."""
    evaluated = {task: [_evaluated(run, task) for run in runs] for task in tasks}
    found: list[DifferingCondition] = []
    for condition in CONDITIONS:
        values = {task: [condition.read(one) for one in of_runs] for task, of_runs in evaluated.items()}
        differing = [task for task, of_task in values.items() if _may_differ(of_task)]
        if differing:
            of_runs = tuple(
                joined({task: values[task][index] for task in differing}) for index in range(len(runs))
            )
            is_of_all = len(differing) == len(tasks)
            found.append(DifferingCondition(condition.name, of_runs, () if is_of_all else tuple(differing)))
    return found


def _may_differ(values: Sequence[str]) -> bool:
    return len(set(values)) > 1 or UNKNOWN in values


def _evaluated(run: EvaluatedRun, task: str) -> EvaluatedTask:
    index = run.plan.task_index_named(task)
    assert index is not None
    return EvaluatedTask(run, index)


def joined(by_task: Mapping[str, str]) -> str:
    """One value for tasks that agree; otherwise each with its tasks, in short."""
    tasks: dict[str, list[str]] = {}
    for task, value in by_task.items():
        tasks.setdefault(value, []).append(task)
    if len(tasks) <= 1:
        return next(iter(tasks), NONE)
    text = "; ".join(f"{value} ({', '.join(named)})" for value, named in tasks.items())
    return text if len(text) <= _MAX_CHARACTERS else _digest(sorted(by_task.items()))


def metric_rules(plan: RunPlan) -> tuple[MetricRule, ...]:
    """The metrics of a run over a data set in the order that was given, the main one first."""
    return tuple(_named(use) for task in plan.tasks for use in task.scoring.metrics)


def rules_in_words(rules: Sequence[MetricRule]) -> str:
    return ", ".join(" ".join(part for part in rule if part) for rule in rules) or NONE


def _named(use: MetricUse) -> MetricRule:
    return use.name, _cut(use.options_json)


def _worded(value: object) -> str:
    if value is None or value in ({}, [], ""):
        return NONE
    if isinstance(value, float):
        return "0" if value == 0 else str(value)
    return _cut(value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False))


def _cut(text: str) -> str:
    """Equal for equal texts only, however long they are."""
    if len(text) <= _MAX_CHARACTERS:
        return text
    return f"{text[:_MAX_CHARACTERS]}… (SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:_DIGEST_CHARACTERS]
