"""Views of the form of an order for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from typing import ClassVar

from pydantic import BaseModel

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.metric import MetricInput
from proctor.values.names.model_name import provider_of
from proctor.values.names.run_labels import tags_in
from proctor.values.priority import Priority
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.scoring import PromptForm, ScoringMethod
from services.gateway.api.models import ModelShown, models_shown
from services.gateway.api.suites.schemas import SuiteList, SuiteListed
from services.gateway.http.errors import Faults
from services.gateway.http.presentation import optional, present
from services.gateway.pages.order_fields import LABELS, NO_METRIC, ParameterField, fields_of, others_of
from services.gateway.pages.orders.form import ALSO, OrderForm
from services.gateway.pages.rows.runs import RunRow, run_shown


class EarlierRun(RunRow):
    """The latest completed run of this model on this, as a measure of what the order takes."""

    cost: float | None
    currency: str


class Estimate(BaseModel):
    """Time and cost of the order, its wait included; None where nothing is measured.

    The low and the high time are those if all goes as fast and as slowly as it ever did.

    `refusal`: why it would not be taken as it is, by the fields of the form.
    """

    estimated_seconds: float | None = None
    estimated_low_seconds: float | None = None
    estimated_high_seconds: float | None = None
    estimated_cost: float | None = None
    currency: str = ""
    refusal: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class OrderFormView:
    """`unknown`: names that their provider does not list, each with the listed names that are like it."""

    max_offered: ClassVar[int] = 300
    max_rollouts: ClassVar[int] = MAX_ROLLOUTS
    form: OrderForm
    models: Sequence[ModelShown]
    unlisted: Sequence[scheduler_pb2.ModelSource]
    unknown: Mapping[str, Sequence[str]]
    suites: Sequence[SuiteListed]
    datasets: Sequence[dataset_pb2.Dataset]
    fields: Sequence[ParameterField]
    others: Mapping[str, str]
    earlier: EarlierRun | None
    pending: int
    faults: Faults
    request_id: str
    estimate: Estimate | None

    def fault(self, name: str) -> str:
        return self.faults.get(name, "")

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the fields by their names."""
        limit = {"limit": "Limit rows"} if self.form.kind == "dataset" else {}
        return {**LABELS, **limit, **{field.name: field.label for field in self.fields}}

    @property
    def elsewhere(self) -> Sequence[str]:
        """Problems that belong to no field of the form."""
        return [sentence for name, sentence in self.faults.items() if name not in self.labels]

    @property
    def priorities(self) -> Sequence[tuple[str, str]]:
        """Values and labels of the options; without one the kind of the rows decides."""
        return (("", "default"), *((each.value, each.value) for each in Priority))

    @property
    def scoring_methods(self) -> Sequence[tuple[str, str]]:
        return (("", "automatic"), *((each.value, each.in_words) for each in ScoringMethod))

    @property
    def prompt_forms(self) -> Sequence[tuple[str, str]]:
        return (("", "what the engine takes"), *((each.value, each.value) for each in PromptForm))

    @property
    def model(self) -> ModelShown | None:
        return next((each for each in self.models if each.model == self.form.get("model")), None)

    @property
    def metrics(self) -> Sequence[str]:
        """The metrics of text that an order may name, and what else the form has."""
        of_text = [name for name, metric in METRICS.items() if MetricInput.TEXT in metric.inputs]
        return list(dict.fromkeys([*of_text, *(each for each in self.chosen_metrics if each != NO_METRIC)]))

    @property
    def chosen_metrics(self) -> Sequence[str]:
        """Those of the form, else exact matches with the targets, if there are any."""
        chosen = next((each for each in self.datasets if each.dataset_id == self.form.benchmark), None)
        usual = "exact_match" if chosen and chosen.target_count else NO_METRIC
        return self.form.several("metric") or [usual]

    @property
    def offered(self) -> Mapping[str, Sequence[ModelShown]]:
        """The listed models by provider, as many as a list can be looked through."""
        shown = sorted(self.models[: self.max_offered], key=lambda each: each.provider)
        return {provider: list(models) for provider, models in groupby(shown, lambda each: each.provider)}

    @property
    def suite(self) -> SuiteListed | None:
        named = self.form.benchmark if self.form.kind == "suite" else ""
        return next((each for each in self.suites if each.suite == named), None)


@dataclass(frozen=True, slots=True)
class OfferedOptions:
    """The options of the form, as the services list them now."""

    models: scheduler_pb2.ListModelsResponse
    suites: scheduler_pb2.ListSuitesResponse
    datasets: dataset_pb2.ListDatasetsResponse
    earlier: EarlierRun | None
    pending: int


def order_view(
    form: OrderForm, listed: OfferedOptions, faults: Faults, request_id: str, estimate: Estimate | None = None
) -> OrderFormView:
    engines = {source.pool: source.engine for source in listed.models.sources}
    providers = {source.provider: source.engine for source in listed.models.sources}
    chosen = next((each for each in listed.models.models if each.model == form.get("model")), None)
    provider = provider_of(form.get("model"))
    engine = engines.get(chosen.pool, "") if chosen else providers.get(provider, "")
    return OrderFormView(
        form=form,
        models=models_shown(listed.models),
        unknown=_unknown(form, listed.models),
        unlisted=[each for each in listed.models.sources if each.problem],
        suites=present(SuiteList, listed.suites).suites,
        datasets=listed.datasets.datasets,
        fields=fields_of(engine),
        others=others_of(engine),
        earlier=listed.earlier,
        pending=listed.pending,
        faults=faults,
        request_id=request_id,
        estimate=estimate,
    )


def _unknown(form: OrderForm, listed: scheduler_pb2.ListModelsResponse) -> Mapping[str, Sequence[str]]:
    """Of a provider whose list could not be read nothing is known."""
    names = {each.model for each in listed.models} | set(listed.aliases)
    complete = {
        source.provider for source in listed.sources if not source.problem and source.HasField("listed_at")
    }
    typed = [name for name in (form.get("model"), *tags_in(form.get(ALSO))) if name and name not in names]
    return {
        name: get_close_matches(name, sorted(names), n=3) for name in typed if provider_of(name) in complete
    }


def earlier_run(run: run_pb2.Run, summary: summary_pb2.RunSummary) -> EarlierRun:
    cost, currency = optional(summary, "cost"), summary.price.currency
    return run_shown(EarlierRun, run, error="", cost=cost, currency=currency)
