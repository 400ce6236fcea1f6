"""The input of the form of an order, converted to an order or to faults at their fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import ImmutableMultiDict

from proctor.v1 import run_pb2, sample_pb2
from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from proctor.values.judging.named_judge import read_judge
from proctor.values.names.model_name import split_model
from proctor.values.names.run_labels import tags_in
from proctor.values.run import window_seconds
from services.common.errors import DomainError
from services.gateway.api.dataset_runs.requests import MetricWithOptions
from services.gateway.api.runs.requests import JudgeNamed, RunRequest
from services.gateway.http.errors import Faults, FormFaults
from services.gateway.http.form_sentences import form_sentence
from services.gateway.http.json_values import read_json
from services.gateway.http.project_names import key_project
from services.gateway.pages.addresses import address
from services.gateway.pages.order_fields import NAMES, NO_METRIC
from services.gateway.pages.text import entered

# Further models, separated by commas.
ALSO = "also"
CRON, TIME_ZONE = "cron", "time_zone"
GATE_BASE, GATE_MARGIN = "gate_base", "gate_margin_points"
UNTIL_DECIDED, MARGIN, ALPHA = "until_decided", "margin_points", "alpha"
_NUMBERS = ("project_id", "limit", "num_fewshot", "rollouts", "max_cost")
_WORDS = ("priority", "scoring_method", "prompt_form", "truncate", "reasoning")
_SWITCHES = ("reuse_answers", "stream_answers")
WITHOUT_JUDGES = "without_judges"
# Fields that may have several values.
_LISTS = ("tasks", "metric", "line_models", "judges")
# Fields of the order, and reasons without a field, by the field of the form.
_FIELDS = {
    "suite": "benchmark",
    "dataset_id": "benchmark",
    "provider": "model",
    "against_model": ALSO,
    "completion_window_seconds": "completion_window",
    # Of a schedule.
    "gate": "gate_base",
    "base_run_id": "gate_base",
}
_FIELD_OF_REASON = {
    "UNKNOWN_MODEL": "model",
    "UNKNOWN_PROVIDER": "model",
    "UNKNOWN_SUITE": "benchmark",
    "UNKNOWN_TASK": "tasks",
    "DATASET_NOT_FOUND": "benchmark",
    "INVALID_SUITE_FILE": "benchmark",
    "PROJECT_NOT_FOUND": "project_id",
}
_LINKED = frozenset(
    {
        "name",
        "tags",
        "note",
        "model",
        ALSO,
        CRON,
        TIME_ZONE,
        GATE_BASE,
        GATE_MARGIN,
        UNTIL_DECIDED,
        MARGIN,
        ALPHA,
        WITHOUT_JUDGES,
        "benchmark",
        "custom",
        "base_url",
        "completion_window",
        *_NUMBERS,
        *_WORDS,
        *_SWITCHES,
        *NAMES,
    }
)


@dataclass(frozen=True, slots=True)
class OrderForm:
    """All that was entered, as text. `benchmark` is "suite:name" or "dataset:ds_…"."""

    values: dict[str, str]
    lists: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, given: ImmutableMultiDict[str, Any]) -> "OrderForm":
        """Reads a query or a form; files and unknown names are ignored."""
        texts = {
            name: value.strip()
            for name, value in given.items()
            if isinstance(value, str) and name not in _LISTS
        }
        # Addresses that users kept may have the parameter's earlier name.
        texts.setdefault("benchmark", texts.pop("subject", ""))
        lists = {
            name: [value.strip() for value in given.getlist(name) if isinstance(value, str) and value.strip()]
            for name in _LISTS
        }
        return cls(texts, lists)

    def several(self, name: str) -> Sequence[str]:
        return self.lists.get(name, ())

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def link(self, **changes: str) -> str:
        """The address of the form with all that is entered, and some fields changed."""
        known = [(name, value) for name, value in (self.values | changes).items() if name in _LINKED]
        several = [(name, value) for name, values in self.lists.items() for value in values]
        return address("/runs/new", known + several)

    def link_with_also(self, model: str) -> str:
        """The address with one more model."""
        return self.link(**{ALSO: ", ".join(dict.fromkeys([*tags_in(self.get(ALSO)), model]))})

    @property
    def kind(self) -> str:
        return self.get("benchmark").partition(":")[0]

    @property
    def benchmark(self) -> str:
        return self.get("benchmark").partition(":")[2]

    def to_order(self) -> run_pb2.RunOrder:
        """Raises FormFaults with all faults that show without asking the scheduler."""
        faults: dict[str, str] = {}
        if not self.get("model"):
            faults["model"] = "Choose a model, or write one as provider/name."
        elif "/" not in self.get("model").strip("/"):
            faults["model"] = "Write the model as provider/name."
        if not self.benchmark:
            faults["benchmark"] = "Choose a suite or a data set."
        params, window = self._params(faults), self._window_seconds(faults)
        named = [text for text in self.several("metric") if text != NO_METRIC]
        metrics = [self._metric(text, faults) for text in named]
        judges = [self._judge(text, faults) for text in self.several("judges")]
        try:
            request = RunRequest.model_validate(self._body(params))
        except ValidationError as error:
            # The sentences of the checks above are better, such as that for a missing model.
            raise FormFaults({**_faults_of(error), **faults}) from error
        if judges and self.get(WITHOUT_JUDGES):
            faults["judges"] = "Name no judges, or take the tick of the suite’s away."
        if faults:
            raise FormFaults(faults)
        order = request.to_order()
        order.judges.extend(judges)
        order.without_judges = bool(self.get(WITHOUT_JUDGES)) and self.kind != "dataset"
        if self.kind == "dataset":
            order.suite, order.dataset_id = "", self.benchmark
            order.metrics.extend(metrics)
            order.line_models.extend(self.several("line_models"))
            if window:
                order.completion_window_seconds = window
        return order

    def to_orders(self) -> Sequence[run_pb2.RunOrder]:
        """The order for each of its models. Raises FormFaults."""
        orders = [self.to_order()]
        models = [self.get("model"), *tags_in(self.get(ALSO))]
        if len(models) > MAX_COMPARED:
            raise FormFaults({ALSO: f"At most {MAX_COMPARED} models are evaluated together."})
        if unnamed := [model for model in models if "/" not in model.strip("/")]:
            raise FormFaults({ALSO: f"Write {unnamed[0]} as provider/name."})
        if self.get(UNTIL_DECIDED):
            return [self._until_decided(orders[0], models)]
        for model in models[1:]:
            if model not in [order.model for order in orders]:
                orders.append(run_pb2.RunOrder())
                orders[-1].CopyFrom(orders[0])
                orders[-1].model = model
        return orders

    def _until_decided(self, order: run_pb2.RunOrder, models: Sequence[str]) -> run_pb2.RunOrder:
        """The scheduler makes the second run."""
        if len(models) != MIN_COMPARED:
            raise FormFaults({ALSO: "Name one more model: two runs are decided between."})
        order.until_decided.against_model = models[1]
        for name, example in ((MARGIN, "points, such as 1"), (ALPHA, "0 to 0.5, such as 0.05")):
            try:
                if given := self.get(name):
                    setattr(order.until_decided, name, float(given))
            except ValueError as error:
                raise FormFaults({name: f"Write a number of {example}."}) from error
        return order

    def labels(self) -> run_pb2.RunLabels:
        return run_pb2.RunLabels(name=self.get("name"), tags=tags_in(self.get("tags")), note=self.get("note"))

    def _window_seconds(self, faults: dict[str, str]) -> int:
        """0 for none."""
        given = self.get("completion_window")
        try:
            return window_seconds(given) if given else 0
        except ValueError as error:
            faults["completion_window"] = f"{error}."
            return 0

    def _metric(self, text: str, faults: dict[str, str]) -> sample_pb2.MetricUse:
        """A name, or as JSON a name and its options: {"metric": "f1", "average": "macro"}."""
        if not text.startswith("{"):
            return sample_pb2.MetricUse(name=text)
        try:
            options = read_json(text)
            return MetricWithOptions(name=options.pop("metric"), options=options).to_proto()
        except (ValueError, KeyError) as error:
            faults["metric"] = f"This is not a metric with options: {error}."
            return sample_pb2.MetricUse()

    def _judge(self, text: str, faults: dict[str, str]) -> run_pb2.NamedJudge:
        """MODEL[:PROMPT][@SCALE], or as JSON what REST takes."""
        try:
            if not text.startswith("{"):
                judge = read_judge(text)
                return run_pb2.NamedJudge(model=judge.model, prompt=judge.prompt, scale=judge.scale)
            return JudgeNamed.model_validate(read_json(text)).to_proto()
        except ValidationError as error:
            faults["judges"] = f"This is no judge: {form_sentence(error.errors()[0])}"
        except ValueError as error:
            faults["judges"] = f"This is not JSON: {error}." if text.startswith("{") else f"{error}."
        return run_pb2.NamedJudge()

    def _params(self, faults: dict[str, str]) -> dict[str, Any]:
        params: dict[str, Any] = {name: entered(self.get(name)) for name in NAMES if self.get(name)}
        try:
            custom = read_json(self.get("custom") or "{}")
        except ValueError as error:
            faults["custom"] = f"This is not JSON: {error}."
            return params
        if not isinstance(custom, dict):
            faults["custom"] = 'Write an object, such as {"min_p": 0.1}.'
            return params
        return {**custom, **params}

    def _body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        provider, name = split_model(self.get("model"))
        body: dict[str, Any] = {
            "project_id": key_project() or 1,
            "suite": self.benchmark[:128],
            "tasks": [*self.several("tasks")],
            "name": self.get("name"),
            "tags": tags_in(self.get("tags")),
            "note": self.get("note"),
        }
        body |= {each: entered(self.get(each)) for each in _NUMBERS if self.get(each)}
        body |= {each: self.get(each) for each in _WORDS if self.get(each)}
        body |= {each: bool(self.get(each)) for each in _SWITCHES}
        body |= {"config": {"provider": provider, "model": name, "base_url": self.get("base_url")}}
        return body | ({"params": dict(params)} if params else {})


def faults_of_refusal(error: DomainError) -> Faults:
    """The refusal of a service, as a problem at the field that it names."""
    named = str(error.facts.get("field", "")).rpartition(".")[2]
    field = _FIELDS.get(named, named) or _FIELD_OF_REASON.get(error.reason, "")
    return {field: error.message}


def _faults_of(error: ValidationError) -> Faults:
    faults: dict[str, str] = {}
    for fault in error.errors():
        parts = [str(part) for part in fault["loc"] if not isinstance(part, int)]
        named = parts[-1] if parts else ""
        field = _FIELDS.get(named, "custom" if named == "params" else named)
        faults.setdefault(field, form_sentence(fault))
    return faults
