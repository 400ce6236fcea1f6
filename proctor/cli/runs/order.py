"""The options of `proctor run`, and the order made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from proctor.cli.options import (
    PROJECT_METAVAR,
    PROJECT_VARIABLE,
    json_or_text,
    metric_use,
    points,
    read_project,
)
from proctor.cli.render.words import option_value
from proctor.cli.runs.judge_prompt import named_judge
from proctor.client.errors import Refused
from proctor.v1 import run_pb2
from proctor.values.priority import default_priority
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.run import window_seconds
from proctor.wire.enums import words_of
from proctor.wire.well_known import unless_empty

_PROMPT_FORMS: Mapping[bool | None, run_pb2.PromptForm.ValueType] = {
    None: run_pb2.PROMPT_FORM_UNSPECIFIED,
    True: run_pb2.PROMPT_FORM_CHAT,
    False: run_pb2.PROMPT_FORM_COMPLETION,
}
_METRIC_HELP = (
    "How answers are scored against the targets of a data set, such as exact_match, "
    'numeric:tolerance=0.01 or {"metric": "regex", "pattern": "…"}; repeat for several. Default: not at all.'
)
PRIORITY_HELP = (
    f"{' | '.join(words_of(run_pb2.Priority))}; default: {default_priority(is_background=False)}, "
    f"{default_priority(is_background=True)} for a data set."
)
_OWN_PARAMS = frozenset(run_pb2.GenerationParams.DESCRIPTOR.fields_by_name) - {"provider_params"}


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """Options: each field is one. `param` are NAME=VALUE texts, which override the parameters before them."""

    model: Annotated[str, typer.Option(help="provider/name, such as vllm/starter (see `proctor models`).")]
    suite: Annotated[str, typer.Option(help="A suite, such as glue (see `proctor suites`).")] = ""
    dataset: Annotated[
        str,
        typer.Option(
            metavar="FILE|ID", help="A data set instead: its id, or a file, which is uploaded if needed."
        ),
    ] = ""
    base_url: Annotated[
        str, typer.Option(help="Send requests to this server; an operator has to allow it.")
    ] = ""
    task: Annotated[list[str] | None, typer.Option(help="A task of the suite; repeat for several.")] = None
    metric: Annotated[list[str] | None, typer.Option(metavar="NAME|JSON", help=_METRIC_HELP)] = None
    limit: Annotated[int | None, typer.Option(help="First N rows of each task.")] = None
    num_fewshot: Annotated[int | None, typer.Option(help="Examples in each prompt.")] = None
    rollouts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_ROLLOUTS,
            help="Repetitions of each sample; without it 1, or the repeats of the tasks.",
        ),
    ] = None
    line_model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name of the model in the lines; repeat for several."),
    ] = None
    completion_window: Annotated[
        str,
        typer.Option(metavar="TIME", help="Such as 24h or 90m: the run fails after this, waiting included."),
    ] = ""
    project: Annotated[
        int,
        typer.Option(
            envvar=PROJECT_VARIABLE,
            parser=read_project,
            metavar=PROJECT_METAVAR,
            help="Name or number of the project that groups runs.",
        ),
    ] = 0
    priority: Annotated[str, typer.Option(help=PRIORITY_HELP)] = ""
    scoring_method: Annotated[
        str, typer.Option(help=f"auto | {' | '.join(words_of(run_pb2.ScoringMethod))}")
    ] = "auto"
    chat: Annotated[
        bool | None, typer.Option("--chat/--completion", help="Send prompts as chats or as text.")
    ] = None
    truncate_left: Annotated[bool, typer.Option(help="Cut prompts that are too long from the left.")] = False
    reasoning: Annotated[
        str,
        typer.Option(help="separate | keep: whether the reasoning of the model is scored with its answer."),
    ] = "separate"
    reuse_answers: Annotated[
        bool,
        typer.Option("--reuse-answers", help="Use stored answers of earlier runs to the same requests."),
    ] = False
    stream_answers: Annotated[
        bool,
        typer.Option("--stream-answers", help="Stream answers over HTTP: times each first token, costs CPU."),
    ] = False
    max_cost: Annotated[float | None, typer.Option(help="The run fails when its tokens cost this much.")] = (
        None
    )
    temperature: Annotated[float | None, typer.Option(help="0 to 2; 0 is greedy.")] = None
    max_tokens: Annotated[int | None, typer.Option(help="Maximum number of tokens to generate.")] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the sampler.")] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Any other parameter of generation, such as top_p=0.9; repeat for several.",
        ),
    ] = None
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL[:PROMPT][@SCALE]",
            help="Judge the answers by this model once the run has completed (see `proctor judge`); "
            "default prompt: correctness, on its scale; repeat for several.",
        ),
    ] = None
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Without the judges of the suite.")] = False
    against: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="With --until-decided: the model that it is compared with, in a second run.",
        ),
    ] = ""
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Stop both runs once one model is shown to be better, or both equivalent.",
        ),
    ] = False
    margin: Annotated[
        str,
        typer.Option(
            metavar="POINTS", help="Smaller differences, such as 1pt, are equivalent. Default: none ever is."
        ),
    ] = ""
    alpha: Annotated[
        float | None, typer.Option(help="Chance of a wrong decision until decided; default: 0.05.")
    ] = None
    name: Annotated[str, typer.Option(help="A name for the run, by which people find it.")] = ""
    tag: Annotated[list[str] | None, typer.Option(help="A tag for the run; repeat for several.")] = None
    note: Annotated[str, typer.Option(help="A note about the run.")] = ""


def labels_of(options: OrderOptions) -> run_pb2.RunLabels:
    return run_pb2.RunLabels(name=options.name, tags=options.tag, note=options.note)


def order_of(options: OrderOptions) -> run_pb2.RunOrder:
    """Raises Refused for contradictions and unknown words; the scheduler checks the ranges."""
    _refuse_contradictions(options)
    params = _params(options)
    try:
        return run_pb2.RunOrder(
            project_id=options.project,
            suite=options.suite,
            dataset_id=options.dataset,
            metrics=[metric_use(text) for text in options.metric or ()],
            line_models=options.line_model,
            completion_window_seconds=(
                _window_seconds(options.completion_window) if options.completion_window else None
            ),
            tasks=options.task,
            model=options.model,
            base_url=options.base_url,
            limit=options.limit,
            num_fewshot=options.num_fewshot,
            rollouts=options.rollouts,
            priority=option_value(run_pb2.Priority, options.priority, "--priority"),
            params=unless_empty(params),
            scoring_method=option_value(
                run_pb2.ScoringMethod, options.scoring_method, "--scoring-method", unset="auto"
            ),
            truncation=run_pb2.TRUNCATION_LEFT if options.truncate_left else run_pb2.TRUNCATION_NONE,
            prompt_form=_PROMPT_FORMS[options.chat],
            reasoning=option_value(run_pb2.Reasoning, options.reasoning, "--reasoning"),
            max_cost=options.max_cost,
            reuse_answers=options.reuse_answers,
            stream_answers=options.stream_answers,
            judges=map(named_judge, options.judge or ()),
            without_judges=options.no_judge,
            until_decided=_until_decided(options),
        )
    except ValueError as error:
        raise Refused(f"A number of the order is too large: {error}.") from error


def refuse_out_of_range(order: run_pb2.RunOrder) -> None:
    """Refuses some orders before a whole stack is started for them; the scheduler would refuse them too."""
    if order.HasField("limit") and order.limit < 1:
        raise Refused(f"limit must be at least 1, not {order.limit}.")
    temperature = order.params.temperature
    if not 0 <= temperature <= 2:
        raise Refused(f"temperature must be at least 0 and at most 2, not {temperature:g}.")


def _until_decided(options: OrderOptions) -> run_pb2.UntilDecided | None:
    if not options.until_decided:
        return None
    return run_pb2.UntilDecided(
        against_model=options.against,
        margin_points=points("--margin", options.margin) if options.margin else None,
        alpha=options.alpha,
    )


def refuse_both(also: Sequence[str] | None) -> None:
    if also:
        raise Refused("--until-decided compares two models: leave out --also.")


def _refuse_undecided(options: OrderOptions) -> None:
    if options.until_decided and not options.against:
        raise Refused("Name the model that this one is compared with: --against MODEL.")
    needing = {"--against": options.against, "--margin": options.margin, "--alpha": options.alpha is not None}
    for name, is_given in needing.items():
        if is_given and not options.until_decided:
            raise Refused(f"{name} is for --until-decided only: add that, or leave it out.")


def _refuse_contradictions(options: OrderOptions) -> None:
    if bool(options.suite) == bool(options.dataset):
        either = "--suite NAME or --dataset FILE"
        both = f"A run is over a suite or over a data set, not both: leave out one of {either}."
        raise Refused(both if options.suite else f"Name what the model is evaluated on: {either}.")
    only_suites = {
        "--task": options.task,
        "--num-fewshot": options.num_fewshot is not None,
        "--scoring-method": options.scoring_method != "auto",
        "--no-judge": options.no_judge,
    }
    only_datasets = {
        "--metric": options.metric,
        "--line-model": options.line_model,
        "--completion-window": options.completion_window,
    }
    kind, misplaced = ("suites", only_suites) if options.dataset else ("data sets", only_datasets)
    for name, is_given in misplaced.items():
        if is_given:
            raise Refused(f"{name} is for {kind} only: leave it out.")
    if options.judge and options.no_judge:
        raise Refused("--judge names a judge and --no-judge wants none: leave one of the two out.")
    _refuse_undecided(options)


def _window_seconds(text: str) -> int:
    try:
        return window_seconds(text)
    except ValueError as error:
        raise Refused(f"--completion-window {text}: {error}.") from error


def _params(options: OrderOptions) -> run_pb2.GenerationParams:
    own = {"temperature": options.temperature, "max_tokens": options.max_tokens, "seed": options.seed}
    given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
    given |= dict(map(_named_value, options.param or ()))
    params = run_pb2.GenerationParams()
    for name, value in given.items():
        try:
            if name in _OWN_PARAMS:
                setattr(params, name, value)
            else:
                params.provider_params.update({name: value})
        except (TypeError, ValueError) as error:
            raise Refused(f"The parameter {name} cannot be {value!r}: {error}.") from error
    return params


def _named_value(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise Refused(f"--param {text}: write it as NAME=VALUE, such as --param min_p=0.1.")
    return name, json_or_text(value)
