"""The order of a run once more: its parameters in words, and the form, command and JSON that repeat it."""

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.v1 import run_pb2, sample_pb2
from proctor.values.comparison import DEFAULT_DECISION_ALPHA
from proctor.values.judging.named_judge import judge_in_words
from proctor.wire.comparison_notes import compares
from services.gateway.api.runs.repeat import (
    chosen_options,
    judging_options,
    metric_options,
    named_judge,
    params_of,
    repeated_suite,
    repeating_body,
    repeating_path,
    window_text,
)
from services.gateway.http.project_names import project
from services.gateway.pages.addresses import address
from services.gateway.pages.order_fields import LABELS, NAMES, NO_METRIC, PARAMETER_LABELS
from services.gateway.pages.runs.judge_form import judge_link

# Parameters of generation that `proctor run` has an option for.
_OWN_OPTIONS = frozenset({"temperature", "max_tokens", "seed"})


@dataclass(frozen=True, slots=True)
class RepeatedOrder:
    """`parameters` are pairs of a label and a value; `path` takes `body`."""

    parameters: Sequence[tuple[str, str]]
    link: str
    command: str
    path: str
    body: str


def repeated_order(run: run_pb2.Run) -> RepeatedOrder:
    """The order of an imported run is what its log tells; it says so first."""
    origin = [("Imported from", run.order.imported_from)] if run.order.imported_from else []
    return RepeatedOrder(
        parameters=[*origin, *parameters_of(run)],
        link=form_link(run),
        command=command(run),
        path=repeating_path(run),
        body=json.dumps(repeating_body(run), indent=2, ensure_ascii=False),
    )


def form_link(run: run_pb2.Run) -> str:
    """The address of the form of an order with all of the run's order entered; of a judge, the judged run."""
    order = run.order
    params = params_of(order)
    custom = {name: value for name, value in params.items() if name not in NAMES}
    if order.HasField("judge"):
        return judge_link(order)
    benchmark = f"dataset:{order.dataset_id}" if order.dataset_id else f"suite:{repeated_suite(run)}"
    pairs = [("model", order.model), ("benchmark", benchmark)]
    pairs += [(name, "1" if value is True else str(value)) for name, value in chosen_options(order).items()]
    pairs += [("project_id", project(order.project_id)), ("base_url", order.base_url)]
    pairs += [(name, str(value)) for name, value in params.items() if name in NAMES]
    pairs += [("custom", json.dumps(custom, ensure_ascii=False) if custom else "")]
    pairs += [("completion_window", window_text(order))]
    pairs += [*_decided_pairs(order.until_decided)] if order.HasField("until_decided") else []
    pairs += [("tasks", task) for task in order.tasks]
    metrics = [_metric_text(each) for each in order.metrics]
    pairs += [("metric", each) for each in metrics or ([NO_METRIC] if order.dataset_id else [])]
    pairs += [("judges", _judge_text(each)) for each in order.judges]
    pairs += [("without_judges", "1")] if order.without_judges else []
    return address("/runs/new", pairs + [("line_models", name) for name in order.line_models])


def command(run: run_pb2.Run) -> str:
    """The command line of `proctor run`, or of `proctor judge`."""
    order = run.order
    if order.HasField("judge"):
        return _judge_command(order)
    words = ["proctor", "run", "--model", order.model]
    words += ["--dataset", order.dataset_id] if order.dataset_id else ["--suite", repeated_suite(run)]
    words += [word for task in order.tasks for word in ("--task", task)]
    words += [word for metric in order.metrics for word in ("--metric", _metric_text(metric))]
    words += [word for name in order.line_models for word in ("--line-model", name)]
    words += [*_option_words(chosen_options(order))]
    words += ["--completion-window", window] if (window := window_text(order)) else []
    words += ["--base-url", order.base_url] if order.base_url else []
    words += [word for judge in order.judges for word in ("--judge", _judge_words(judge))]
    words += ["--no-judge"] if order.without_judges else []
    words += [*_decided_words(order.until_decided)] if order.HasField("until_decided") else []
    words += ["--project", project(order.project_id)] if order.project_id else []
    return shlex.join([*words, *_param_words(params_of(order))])


def _decided_pairs(wanted: run_pb2.UntilDecided) -> Iterator[tuple[str, str]]:
    yield from (("also", wanted.against_model), ("until_decided", "1"))
    if wanted.HasField("margin_points"):
        yield "margin_points", f"{wanted.margin_points:g}"
    if wanted.alpha != DEFAULT_DECISION_ALPHA:
        yield "alpha", f"{wanted.alpha:g}"


def _decided_words(wanted: run_pb2.UntilDecided) -> Iterator[str]:
    yield from ("--against", wanted.against_model, "--until-decided")
    if wanted.HasField("margin_points"):
        yield from ("--margin", f"{wanted.margin_points:g}pt")
    if wanted.alpha != DEFAULT_DECISION_ALPHA:
        yield from ("--alpha", f"{wanted.alpha:g}")


def _judge_command(order: run_pb2.RunOrder) -> str:
    judge = order.judge
    words = ["proctor", "judge", judge.run_id, "--model", order.model, "--prompt", judge.prompt]
    words += ["--against", judge.against_run_id] if judge.against_run_id else []
    words += ["--against-target"] if judge.against_target else []
    words += [] if compares(judge) else ["--scale", judge.scale]
    words += [*_option_words(judging_options(order))]
    words += ["--base-url", order.base_url] if order.base_url else []
    words += ["--project", project(order.project_id)] if order.project_id else []
    return shlex.join([*words, *_param_words(params_of(order))])


def _judge_words(judge: run_pb2.NamedJudge) -> str:
    """As `--judge` takes it; a document is a file of its own there."""
    return judge_in_words(judge.model, judge.prompt or ("FILE.yaml" if judge.document else ""), judge.scale)


def _judge_text(judge: run_pb2.NamedJudge) -> str:
    """As the form takes it: JSON for one with a document."""
    return json.dumps(named_judge(judge), ensure_ascii=False) if judge.document else _judge_words(judge)


def _option_words(options: dict[str, Any]) -> Iterable[str]:
    for name, value in options.items():
        if name == "prompt_form":
            yield f"--{value}"
        elif name == "truncate":
            yield f"--truncate-{value}"
        else:
            yield f"--{name.replace('_', '-')}"
            if value is not True:
                yield str(value)


def _param_words(params: dict[str, Any]) -> Iterable[str]:
    for name, value in params.items():
        if name in _OWN_OPTIONS:
            yield from (f"--{name.replace('_', '-')}", str(value))
        else:
            yield from ("--param", f"{name}={json.dumps(value, ensure_ascii=False)}")


def _metric_text(metric: sample_pb2.MetricUse) -> str:
    """As the command and the form take it."""
    options = metric_options(metric)
    return json.dumps({"metric": metric.name, **options}, ensure_ascii=False) if options else metric.name


def parameters_of(run: run_pb2.Run, leaving_out: Collection[str] = frozenset()) -> Iterable[tuple[str, str]]:
    """Labels and values of what was ordered beside model and benchmark, without options of some names."""
    order = run.order
    for name, value in params_of(order).items():
        yield PARAMETER_LABELS.get(name, name), _in_words(value)
    for metric in order.metrics:
        yield LABELS["metric"], _metric_text(metric)
    for name, value in chosen_options(order).items():
        if name not in leaving_out:
            yield LABELS[name], _in_words(value)
    if order.tasks:
        yield LABELS["tasks"], ", ".join(order.tasks)
    if order.HasField("judge"):
        yield "Judge prompt", f"{order.judge.prompt}, version {order.judge.version}"
        yield "Scale", order.judge.scale
    if order.project_id and "project_id" not in leaving_out:
        yield LABELS["project_id"], project(order.project_id)
    for name, text in (
        ("completion_window", window_text(order)),
        ("line_models", ", ".join(order.line_models)),
        ("base_url", order.base_url),
        ("judges", "none" if order.without_judges else ", ".join(map(_judge_words, order.judges))),
    ):
        if text:
            yield LABELS[name], text


def _in_words(value: Any) -> str:
    if value is True:
        return "yes"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
