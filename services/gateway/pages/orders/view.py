"""Views of the form of an order for its template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import model_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.names.model_name import provider_of
from proctor.values.priority import Priority
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.scoring import PromptForm, ScoringMethod
from services.gateway.http.errors import Faults
from services.gateway.http.presentation import moment, optional
from services.gateway.pages.orders.fields import LABELS, ParameterField, fields_of, others_of
from services.gateway.pages.orders.form import OrderForm


@dataclass(frozen=True, slots=True)
class ModelOption:
    name: str
    pool: str
    is_loaded: bool
    size: int | None
    memory: int | None
    context: int | None
    quantization: str
    problem: str


@dataclass(frozen=True, slots=True)
class SuiteOption:
    name: str
    description: str
    tasks: Sequence[str]
    problem: str


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The latest completed run of this model on this, as a measure of what the order takes."""

    run_id: str
    samples: int
    seconds: float | None
    cost: float | None
    currency: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time and cost of the order, its wait included; None where nothing is measured.

    `low` and `high` are the time if all goes as fast and as slowly as it ever did.

    `refusal`: why it would not be taken as it is, by the fields of the form.
    """

    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    cost: float | None = None
    currency: str = ""
    refusal: Faults = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrderFormView:
    max_rollouts: ClassVar[int] = MAX_ROLLOUTS
    form: OrderForm
    models: Sequence[ModelOption]
    unlisted: Sequence[tuple[str, str]]
    suites: Sequence[SuiteOption]
    datasets: Sequence[tuple[str, str, int]]
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
        return {**LABELS, **{field.name: field.label for field in self.fields}}

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
        return (("", "what the model can"), *((each.value, each.in_words) for each in ScoringMethod))

    @property
    def prompt_forms(self) -> Sequence[tuple[str, str]]:
        return (("", "what the engine takes"), *((each.value, each.value) for each in PromptForm))

    @property
    def model(self) -> ModelOption | None:
        return next((each for each in self.models if each.name == self.form.get("model")), None)

    @property
    def suite(self) -> SuiteOption | None:
        named = self.form.benchmark if self.form.kind == "suite" else ""
        return next((each for each in self.suites if each.name == named), None)


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
        models=[_model(each) for each in listed.models.models],
        unlisted=[(each.pool, each.problem) for each in listed.models.sources if each.problem],
        suites=[_suite(each) for each in listed.suites.suites],
        datasets=[(each.dataset_id, each.name, each.row_count) for each in listed.datasets.datasets],
        fields=fields_of(engine),
        others=others_of(engine),
        earlier=listed.earlier,
        pending=listed.pending,
        faults=faults,
        request_id=request_id,
        estimate=estimate,
    )


def earlier_run(run: run_pb2.Run, cost: float | None, currency: str) -> EarlierRun:
    started, finished = moment(run.started_at), moment(run.finished_at)
    seconds = (finished - started).total_seconds() if started and finished else None
    return EarlierRun(run.run_id, run.progress.total, seconds, cost, currency)


def _model(model: model_pb2.ModelInfo) -> ModelOption:
    size, memory, context = (
        optional(model, "size_bytes"),
        optional(model, "memory_bytes"),
        optional(model, "context_tokens"),
    )
    return ModelOption(
        name=model.model,
        pool=model.pool,
        is_loaded=model.is_loaded,
        size=None if size is None else int(size),
        memory=None if memory is None else int(memory),
        context=None if context is None else int(context),
        quantization=model.quantization,
        problem=model.problem,
    )


def _suite(suite: scheduler_pb2.SuiteInfo) -> SuiteOption:
    return SuiteOption(suite.suite, suite.description, [each.task for each in suite.tasks], suite.problem)
