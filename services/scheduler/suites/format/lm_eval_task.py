"""Converts a task of lm-evaluation-harness to our format, and reports its keys that are not supported."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proctor.values.scoring import OutputType
from services.scheduler.suites.format.lm_eval_filters import (
    CodedFilter,
    is_voted,
    leaves_several,
    own_pipeline,
    take_coded_filters,
)
from services.scheduler.suites.format.lm_eval_metrics import (
    PROCESS_RESULTS,
    CodedMetric,
    take_coded_metrics,
)
from services.scheduler.suites.format.lm_eval_rows import (
    DATA_KEYS,
    FILE_FORMATS,
    MEDIA,
    SPLIT_KEYS,
    convert_rows,
    examples_config,
    media_problem,
    named_pool,
)
from services.scheduler.suites.format.metric_checks import NON_OPTION_KEYS, Fields
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault
from services.scheduler.suites.format.task_checks import CHOICE_FILTER
from services.scheduler.suites.format.yaml_document import FunctionName
from services.scheduler.suites.rows.task_code import CUSTOM_DATASET, PROCESS_DOCS, SAMPLER, SAMPLES

_LM_EVAL_KEYS = frozenset({"dataset_path", "dataset_name", *SPLIT_KEYS, "custom_dataset", "class"})
_SAME_KEYS = (
    *("task", "output_type", "doc_to_text", "doc_to_choice", "doc_to_target", "description"),
    *("target_delimiter", "fewshot_delimiter", "num_fewshot", "fewshot_config", "generation_kwargs"),
    *("filter_list", "metric_list", "metadata", "unsafe_code", "code", "gen_prefix"),
)
# Other names of the task, and checks for rows in training data.
_IGNORED = ("task_alias", "tag", "should_decontaminate", "doc_to_decontamination_query")
_UNSUPPORTED = {
    PROCESS_DOCS: "only Python code can change rows, as !function names it",
    PROCESS_RESULTS: "only Python code can score answers, as !function names it",
    CUSTOM_DATASET: "only Python code can load rows, as !function names it",
    "class": "such a class makes its requests by itself: run it in lm-evaluation-harness, and import its log",
    **{key: media_problem(key) for key in MEDIA},
    "use_prompt": "prompts are written in the task, not taken from promptsource",
    "group": "groups are files of their own",
}
_FLAGS = ("ignore_case", "ignore_punctuation", "ignore_numbers")
_TOKEN_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_DEFAULT_METRICS: Mapping[str, tuple[str, ...]] = {
    OutputType.MULTIPLE_CHOICE: ("acc", "acc_norm"),
    OutputType.GENERATE_UNTIL: ("exact_match",),
    OutputType.LOGLIKELIHOOD: ("perplexity", "acc"),
    OutputType.LOGLIKELIHOOD_ROLLING: ("word_perplexity", "byte_perplexity", "bits_per_byte"),
}
# Keys whose Python code is executed: it makes rows, and what is asked of them.
CODE_KEYS = (PROCESS_DOCS, "doc_to_text", "doc_to_choice", "doc_to_target")
_CODED_KEYS = (CUSTOM_DATASET, *CODE_KEYS, PROCESS_RESULTS)


@dataclass
class ConvertedTask:
    """`origins` maps our keys to the original ones; faults have the original keys.

    `fields` are empty if the task is Python code, and have a placeholder for each of `coded_filters`.
    `functions` are those of `CODE_KEYS`, `custom_dataset` and `process_results`, `example_functions` those
    of `fewshot_config`, `arguments` those of `custom_dataset` in JSON. Of `metric_list`, `fields` have what
    is scored without code, `coded_metrics` the rest.
    """

    fields: dict[str, object] = field(default_factory=dict)
    functions: dict[str, FunctionName] = field(default_factory=dict)
    example_functions: dict[str, FunctionName] = field(default_factory=dict)
    coded_metrics: list[CodedMetric] = field(default_factory=list)
    coded_filters: list[CodedFilter] = field(default_factory=list)
    arguments: str = ""
    origins: dict[str, str] = field(default_factory=dict)
    faults: list[ValueFault] = field(default_factory=list)


def is_lm_eval_task(fields: Fields) -> bool:
    return not _LM_EVAL_KEYS.isdisjoint(fields)


def convert_lm_eval_task(fields: Fields) -> ConvertedTask:
    """`fields` are merged as in lm-evaluation-harness: an including file replaces whole values."""
    given = {key: value for key, value in fields.items() if value is not None}
    if "class" in given:
        return ConvertedTask(faults=[ValueFault(("class",), _UNSUPPORTED["class"])])
    task = ConvertedTask({key: given[key] for key in _SAME_KEYS if key in given})
    if not task.fields.get("gen_prefix", True):
        del task.fields["gen_prefix"]
    task.functions = {key: name for key in _CODED_KEYS if isinstance(name := given.get(key), FunctionName)}
    if CUSTOM_DATASET in task.functions:
        task.arguments = _custom_arguments(given)
    task.faults += _key_faults(given)
    _set_coded_metrics(task, given)
    _take_example_functions(task, given)
    taken = take_coded_filters(given.get("filter_list"))
    task.coded_filters, task.faults = taken.coded, [*task.faults, *taken.faults]
    if taken.coded:
        task.fields["filter_list"] = taken.pipelines
    task.faults += code_faults(_without_own_faults({**given, **task.fields}))
    _set_facts(task)
    _set_dataset(task, given)
    _set_examples(task, given)
    _set_metrics(task)
    _set_filters(task, given.get("repeats", 1))
    _set_generation(task)
    return task


def code_faults(value: object, path: KeyPath = ()) -> Iterator[ValueFault]:
    """Faults of Python code that a value names, at any depth."""
    if isinstance(value, FunctionName):
        known = ", ".join((*_CODED_KEYS, "metric_list", "filter_list", "fewshot_config"))
        yield ValueFault(path, f"!function {value}: Python code is executed for {known} only")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from code_faults(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from code_faults(inner, (*path, number))


def _without_own_faults(given: Fields) -> Fields:
    """The values whose code is not executed and has no fault of its key."""
    others = {*CODE_KEYS, *_UNSUPPORTED, *_IGNORED}
    return {key: value for key, value in given.items() if key not in others}


def _key_faults(given: Fields) -> Iterator[ValueFault]:
    known = {*_SAME_KEYS, *DATA_KEYS, *_IGNORED, *_UNSUPPORTED, "repeats"}
    for key, value in given.items():
        if key not in known:
            yield ValueFault((key,), "lm-evaluation-harness has no such key")
        elif key in (CUSTOM_DATASET, PROCESS_DOCS, PROCESS_RESULTS) and isinstance(value, FunctionName):
            continue
        elif key in _UNSUPPORTED and value not in (False, "", []):
            yield ValueFault((key,), _UNSUPPORTED[key])
    repeats = given.get("repeats", 1)
    if repeats != 1 and leaves_several(given.get("filter_list")):
        problem = f"answers are scored one by one, and these filters leave several of {repeats}"
        yield ValueFault(("repeats",), f"{problem}; leave it out and order the run with as many rollouts")


def _custom_arguments(given: Fields) -> str:
    """As there: the metadata, and how the data set is loaded."""
    parts = [given.get(key) for key in ("metadata", "dataset_kwargs")]
    merged = {str(key): value for part in parts if isinstance(part, dict) for key, value in part.items()}
    return json.dumps(merged, sort_keys=True, default=str)


def _set_facts(task: ConvertedTask) -> None:
    metadata = task.fields.get("metadata")
    version = metadata.get("version", "0") if isinstance(metadata, dict) else "0"
    task.fields["version"] = str(version)
    task.origins["version"] = "metadata"
    task.fields.setdefault("output_type", OutputType.GENERATE_UNTIL.value)
    choices = task.fields.get("doc_to_choice")
    if isinstance(choices, dict):
        task.fields["doc_to_choice"] = list(choices.values())


def _set_dataset(task: ConvertedTask, given: Fields) -> None:
    rows = convert_rows(given)
    task.fields["dataset"] = rows.dataset
    task.faults += rows.faults
    task.origins |= {
        "dataset.id": "dataset_path",
        "dataset.config": "dataset_name",
        "dataset.data_files": "dataset_kwargs",
        "dataset.csv": "dataset_kwargs",
        "dataset": "dataset_path",
    }
    if given.get("dataset_path") in FILE_FORMATS:
        task.origins |= {"dataset.file": "dataset_kwargs", "dataset.fewshot_file": "dataset_kwargs"}


def _set_examples(task: ConvertedTask, given: Fields) -> None:
    """A document is not an example of itself if pool and test split have the same name, or both have none."""
    config = dict(examples_config(task.fields))
    config.pop("split", None)
    choices = config.get("doc_to_choice")
    if isinstance(choices, dict):
        config["doc_to_choice"] = list(choices.values())
    if named_pool(given):
        config.pop("samples", None)
        task.example_functions.pop(SAMPLES, None)
    config["drop_document"] = named_pool(given) == given.get("test_split", "")
    task.fields["fewshot_config"] = config
    task.origins["fewshot_config.drop_document"] = "fewshot_config"


def _take_example_functions(task: ConvertedTask, given: Fields) -> None:
    """Takes the functions of `fewshot_config` out of it."""
    config = {key: value for key, value in examples_config(given).items() if value is not None}
    named = (*CODE_KEYS, SAMPLES, SAMPLER)
    task.example_functions = {key: name for key in named if isinstance(name := config.get(key), FunctionName)}
    if config:
        others = {key: value for key, value in config.items() if key not in task.example_functions}
        task.fields["fewshot_config"] = others


def _set_coded_metrics(task: ConvertedTask, given: Fields) -> None:
    """Takes the metrics that Python code scores or aggregates out of `metric_list`."""
    output_type = str(given.get("output_type", OutputType.GENERATE_UNTIL))
    uses = given.get("metric_list", _default_uses(output_type))
    taken = take_coded_metrics(uses, output_type, is_processed=PROCESS_RESULTS in task.functions)
    if not taken.coded:
        return
    task.coded_metrics, task.faults = taken.coded, [*task.faults, *taken.faults]
    task.fields["metric_list"] = taken.others
    if "majority_vote" in json.dumps(given.get("filter_list", "")):
        task.faults.append(ValueFault(("filter_list",), "majority_vote does not fit metrics by Python code"))


def _default_uses(output_type: str) -> list[dict[str, object]]:
    # Other output types are refused later.
    return [{"metric": name} for name in _DEFAULT_METRICS.get(output_type, ("acc",))]


def _set_metrics(task: ConvertedTask) -> None:
    """lm-evaluation-harness ignores options of metrics over choices, and takes any text for true."""
    output_type = task.fields["output_type"]
    task.fields.setdefault("metric_list", _default_uses(str(output_type)))
    if task.coded_metrics and not task.fields["metric_list"]:
        del task.fields["metric_list"]
    uses = task.fields.get("metric_list")
    if isinstance(uses, list):
        changed = _with_truth if output_type == OutputType.GENERATE_UNTIL else _without_options
        task.fields["metric_list"] = [changed(use) for use in uses]


def _with_truth(use: object) -> object:
    if not isinstance(use, dict):
        return use
    flags = {key: bool(use[key]) for key in _FLAGS if isinstance(use.get(key), str)}
    return {**use, **flags}


def _without_options(use: object) -> object:
    return (
        {key: value for key, value in use.items() if key in NON_OPTION_KEYS} if isinstance(use, dict) else use
    )


def _set_filters(task: ConvertedTask, repeats: object) -> None:
    """Answers are asked again only where a vote counts them: else the first one is all that has an effect."""
    pipelines = task.fields.get("filter_list")
    if not isinstance(pipelines, list):
        return
    is_repeated = repeats != 1 and is_voted(pipelines)
    if is_repeated:
        task.fields["repeats"] = repeats
    task.fields["filter_list"] = [own_pipeline(each, is_repeated=is_repeated) for each in pipelines]
    if f'"{CHOICE_FILTER}"' in json.dumps(pipelines, default=str):
        # The column that the filter reads.
        task.fields["doc_to_choice_text"] = "choices"
        task.origins["doc_to_choice_text"] = "filter_list"


def _set_generation(task: ConvertedTask) -> None:
    """The token limit has several names in lm-evaluation-harness; the first in this order counts.

    There `do_sample: false` sets the temperature to 0, and otherwise the temperature says whether it samples.
    """
    options = task.fields.get("generation_kwargs")
    if not isinstance(options, dict):
        return
    if task.fields["output_type"] != OutputType.GENERATE_UNTIL:
        # What is weighed is so there as well, whatever it says of texts.
        del task.fields["generation_kwargs"]
        return
    limits = [options[name] for name in _TOKEN_LIMITS if name in options]
    others = {key: value for key, value in options.items() if key not in _TOKEN_LIMITS}
    if isinstance(others.get("do_sample"), bool) and not others.pop("do_sample"):
        others["temperature"] = 0
    # One beam is no search.
    if others.pop("num_beams", 1) != 1:
        problem = "no server of models searches by beams; without it, answers are greedy"
        task.faults.append(ValueFault(("generation_kwargs", "num_beams"), problem))
    task.fields["generation_kwargs"] = {**others, **({"max_gen_toks": limits[0]} if limits else {})}
