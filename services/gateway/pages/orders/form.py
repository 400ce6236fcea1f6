"""The input of the form of an order, converted to an order or to faults at their fields."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import ImmutableMultiDict

from proctor.v1 import run_pb2, sample_pb2
from proctor.values.names.model_name import split_model
from services.common.errors import DomainError
from services.gateway.api.runs.requests import RunRequest
from services.gateway.http.errors import Faults, FormFaults
from services.gateway.http.form_sentences import form_sentence
from services.gateway.pages.addresses import address
from services.gateway.pages.orders.fields import NAMES
from services.gateway.pages.text import entered

_NUMBERS = ("project_id", "limit", "num_fewshot", "rollouts", "max_cost")
_WORDS = ("priority", "scoring_method", "prompt_form", "truncate", "reasoning")
_SWITCHES = ("reuse_answers", "stream_answers")
# Fields of the order, and reasons without a field, by the field of the form.
_FIELDS = {
    "suite": "benchmark",
    "dataset_id": "benchmark",
    "provider": "model",
    "base_url": "model",
    "completion_window_seconds": "model",
}
_FIELD_OF_REASON = {
    "UNKNOWN_MODEL": "model",
    "UNKNOWN_PROVIDER": "model",
    "UNKNOWN_SUITE": "benchmark",
    "UNKNOWN_TASK": "tasks",
    "DATASET_NOT_FOUND": "benchmark",
    "INVALID_SUITE_FILE": "benchmark",
}
_LINKED = frozenset(
    {"model", "benchmark", "metric", "custom", "tasks", *_NUMBERS, *_WORDS, *_SWITCHES, *NAMES}
)


@dataclass(frozen=True, slots=True)
class OrderForm:
    """All that was entered, as text. `benchmark` is "suite:name" or "dataset:ds_…"."""

    values: Mapping[str, str]
    tasks: Sequence[str]

    @classmethod
    def of(cls, given: ImmutableMultiDict[str, Any]) -> "OrderForm":
        """Reads a query or a form; files and unknown names are ignored."""
        texts = {
            name: value.strip() for name, value in given.items() if isinstance(value, str) and name != "tasks"
        }
        # Addresses that users kept may have the parameter's earlier name.
        texts.setdefault("benchmark", texts.pop("subject", ""))
        tasks = [value for value in given.getlist("tasks") if isinstance(value, str) and value]
        return cls(texts, tasks)

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def link(self) -> str:
        """The address of the form with all that is entered."""
        known = [*self.values.items(), *(("tasks", task) for task in self.tasks)]
        return address("/runs/new", [(name, value) for name, value in known if name in _LINKED])

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
        params = self._params(faults)
        try:
            request = RunRequest.model_validate(self._body(params))
        except ValidationError as error:
            # The sentences of the checks above are better, such as that for a missing model.
            raise FormFaults({**_faults_of(error), **faults}) from error
        if faults:
            raise FormFaults(faults)
        order = request.to_order()
        if self.kind == "dataset":
            order.suite, order.dataset_id = "", self.benchmark
            if self.get("metric"):
                order.metrics.append(sample_pb2.MetricUse(name=self.get("metric")))
        return order

    def _params(self, faults: dict[str, str]) -> dict[str, Any]:
        params: dict[str, Any] = {name: entered(self.get(name)) for name in NAMES if self.get(name)}
        try:
            custom = json.loads(self.get("custom") or "{}")
        except ValueError as error:
            faults["custom"] = f"This is not JSON: {error}."
            return params
        if not isinstance(custom, dict):
            faults["custom"] = 'Write an object, such as {"min_p": 0.1}.'
            return params
        return {**custom, **params}

    def _body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        provider, name = split_model(self.get("model"))
        body: dict[str, Any] = {"project_id": 1, "suite": self.benchmark[:128], "tasks": list(self.tasks)}
        body |= {each: entered(self.get(each)) for each in _NUMBERS if self.get(each)}
        body |= {each: self.get(each) for each in _WORDS if self.get(each)}
        body |= {each: bool(self.get(each)) for each in _SWITCHES}
        body |= {"config": {"provider": provider, "model": name}}
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
