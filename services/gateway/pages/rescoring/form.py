"""How stored answers are scored again, as it was entered: a request, or faults at their fields."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import run_pb2, sample_pb2, summary_pb2
from proctor.values.metrics.names import ready_metrics
from proctor.values.scoring import OutputType
from services.common.errors import DomainError
from services.gateway.http.errors import FormFaults
from services.gateway.http.json_values import read_json
from services.gateway.http.presentation import json_text
from services.gateway.pages.addresses import address

OWN = "own"
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to read an answer; `filters` is a filter_list, None for that of the task."""

    value: str
    name: str
    filters: Sequence[Mapping[str, object]] | None


def _regex(pattern: str, at: int) -> Sequence[Mapping[str, object]]:
    step = {"function": "regex", "regex_pattern": pattern, "group_select": at}
    return [{"name": "read", "filter": [step]}]


# One per line; the last one is written by the user.
RULES = (
    Rule("", "as the task says", None),
    Rule(_NONE, "the whole answer", ()),
    Rule("first_line", "its first line", [{"name": "read", "filter": [{"function": "first_line"}]}]),
    Rule("last_number", "its last number", _regex(r"(-?[0-9][0-9,]*\.?[0-9]*)", -1)),
    Rule("last_letter", "its last letter A to J", _regex(r"\b([A-J])\b", -1)),
    Rule("after_answer", "what follows “Answer:”", _regex(r"(?i)answer\s*(?:is)?\s*:?\s*([^\n.]+)", -1)),
    Rule(OWN, "an own filter list", None),
)
_RULES = {rule.value: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class ReasoningOption:
    """What is done with the reasoning of the model."""

    number: run_pb2.Reasoning.ValueType
    name: str


# By the values of the form.
REASONING: Mapping[str, ReasoningOption] = {
    "": ReasoningOption(run_pb2.REASONING_UNSPECIFIED, "as in the run"),
    "separate": ReasoningOption(run_pb2.REASONING_SEPARATE, "is left out of scoring"),
    "keep": ReasoningOption(run_pb2.REASONING_KEEP, "is scored with the answer"),
}


@dataclass(frozen=True, slots=True)
class RescoreForm:
    """All that was entered, as text."""

    task: str = ""
    metric: str = ""
    options: str = ""
    rule: str = ""
    filters: str = ""
    reasoning: str = ""

    def link(self, path: str) -> str:
        """The address of the form with all that is entered."""
        return address(path, asdict(self))

    def to_proto(self, run_id: str, task: str) -> rescore_pb2.RescoreTaskRequest:
        """Raises FormFaults."""
        faults: dict[str, str] = {}
        options = _object(self.options, faults)
        filters = self._filters(faults)
        if options and not self.metric:
            faults["options"] = "Choose the metric that these options are for."
        if self.reasoning not in REASONING:
            faults["reasoning"] = "Choose what is done with the reasoning of the model."
        if faults:
            raise FormFaults(faults)
        metric = sample_pb2.MetricUse(name=self.metric, options_json=json_text(options) if options else "")
        return rescore_pb2.RescoreTaskRequest(
            run_id=run_id,
            task=task,
            metrics=[metric] if self.metric else [],
            filters_json=None if filters is None else (json_text(filters) if filters else ""),
            reasoning=REASONING[self.reasoning].number,
        )

    def _filters(self, faults: dict[str, str]) -> Sequence[object] | None:
        if self.rule != OWN:
            return _RULES.get(self.rule, RULES[0]).filters
        try:
            given = read_json(self.filters or "null")
        except ValueError as error:
            faults["filters"] = f"This is not JSON: {error}."
            return None
        if not isinstance(given, list):
            faults["filters"] = (
                'Write a list, such as [{"name": "read", "filter": [{"function": "first_line"}]}].'
            )
            return None
        return given


def metrics_for(task: summary_pb2.TaskSummary) -> Sequence[str]:
    """Metrics that a task of its kind can have, those of the task first."""
    # With several filters a figure is called "metric,filter".
    own = [figure.metric.partition(",")[0] for figure in task.metrics]
    output_type = OutputType.MULTIPLE_CHOICE if task.scoring_method else OutputType.GENERATE_UNTIL
    has_logprobs = task.scoring_method == run_pb2.SCORING_METHOD_LOGLIKELIHOOD
    fitting = [
        metric.name for metric in ready_metrics(output_type) if has_logprobs or not metric.needs_logprobs
    ]
    return list(dict.fromkeys([*own, *fitting]))


def faults_of_refusal(error: DomainError) -> Mapping[str, str]:
    """The refusal of results, as a problem at the field that it names."""
    field = {"metrics": "metric", "filters_json": "filters"}.get(str(error.facts.get("field", "")), "")
    return {field: error.message}


def _object(given: str, faults: dict[str, str]) -> Mapping[str, object]:
    try:
        read = read_json(given or "{}")
    except ValueError as error:
        faults["options"] = f"This is not JSON: {error}."
        return {}
    if not isinstance(read, dict):
        faults["options"] = 'Write an object, such as {"ignore_case": true}.'
        return {}
    return read
