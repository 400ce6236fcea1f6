"""An order over a data set, held against its rows: which model, form and metrics it comes to."""

from collections.abc import Mapping
from dataclasses import replace

from proctor.values.scoring import PromptForm, ScoringMethod
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.format.metric_checks import resolve_dataset_metrics
from services.scheduler.uploads.checking.row_fields import CHAT, COMPLETION
from services.scheduler.uploads.dataset import DatasetContent
from services.scheduler.uploads.errors import NoTargets, OtherModel
from services.scheduler.workers.model_names import Aliases, names_for

_FORMS: Mapping[str, PromptForm] = {COMPLETION: PromptForm.COMPLETION, CHAT: PromptForm.CHAT}


def resolve_dataset_order(order: RunOrder, content: DatasetContent, aliases: Aliases) -> RunOrder:
    """`model` is given in full. Lines that name an endpoint are asked there."""
    _refuse_what_suites_have(order)
    _check_line_model(order, content, aliases)
    resolved = replace(order, metrics=resolve_dataset_metrics(order.metrics))
    _check_targets(resolved, content)
    return replace(resolved, prompt_form=_resolved_form(order, content.facts.endpoint))


def _refuse_what_suites_have(order: RunOrder) -> None:
    if order.tasks:
        raise _refusal("tasks", "A data set has no tasks to choose from. Leave tasks out.")
    if order.num_fewshot is not None:
        raise _refusal("num_fewshot", "A data set's rows are asked as they are. Leave num_fewshot out.")
    if order.scoring_method not in (None, ScoringMethod.GENERATE):
        sentence = f"scoring_method is {order.scoring_method}, but rows of a data set have no choices."
        raise _refusal("scoring_method", f"{sentence} Leave it out.")


def _check_line_model(order: RunOrder, content: DatasetContent, aliases: Aliases) -> None:
    known = names_for(order.model, aliases).union(order.line_models)
    other = next((model for model in content.facts.models if model not in known), None)
    if other is not None:
        raise OtherModel(dataset_id=order.dataset_id, line_model=other, model=order.model)


def _check_targets(order: RunOrder, content: DatasetContent) -> None:
    """Checks targets. Under a limit, rows without one may be those not asked: planning finds out."""
    facts = content.facts
    # The first rows are asked, but which rows lack a target is not stored: only their number is.
    unasked = max(0, facts.row_count - order.limit) if order.limit is not None else 0
    missing = facts.row_count - facts.target_count - unasked
    if order.metrics and missing > 0:
        raise NoTargets(dataset_id=order.dataset_id, metric=order.metrics[0].name, rows=missing)


def _resolved_form(order: RunOrder, endpoint: str) -> PromptForm | None:
    """Lines that name an endpoint decide the form; for plain prompts the order decides."""
    form = _FORMS.get(endpoint)
    if form is not None and order.prompt_form not in (None, form):
        sentence = f"prompt_form is {order.prompt_form}, but the lines ask {endpoint}. Leave it out."
        raise _refusal("prompt_form", sentence)
    return form or order.prompt_form


def _refusal(field: str, sentence: str) -> InvalidParameter:
    return InvalidParameter(field=f"order.{field}", sentence=sentence)
