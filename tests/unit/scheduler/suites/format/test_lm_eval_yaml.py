"""YAML of lm-evaluation-harness: the simple kind loads as it is, the rest is refused with line and reason."""

import json

import pytest

from proctor.values.code import CodeAnswer
from proctor.values.scoring import GroupMetric, OutputType, TaskGroup
from services.scheduler.suites.suite import FewshotSampler, TaskDefinition
from tests.fakes.suites.suite_documents import faults_of, suite_of

CHOICES = """\
task: hues
tag: [colour_tasks]
dataset_path: org/colours
dataset_name: warm
output_type: multiple_choice
training_split: train
validation_split: validation
doc_to_text: "{{thing}} is"
doc_to_target: label
doc_to_choice: {"0": red, "1": green}
should_decontaminate: true
doc_to_decontamination_query: thing
metadata:
  version: 2.0
"""
WORDS = """\
task: words
dataset_path: org/words
test_split: test
doc_to_text: "Say {{word}}:"
doc_to_target: "{{word}}"
"""
SPLITS = {
    "training_split": "train",
    "validation_split": "validation",
    "test_split": "test",
    "fewshot_split": "dev",
}


def task_of(text: str) -> TaskDefinition:
    [task] = suite_of(text).tasks
    return task


def with_splits(*keys: str, more: str = "") -> TaskDefinition:
    lines = [line for line in CHOICES.splitlines() if "_split" not in line]
    return task_of("\n".join([*lines, *(f"{key}: {SPLITS[key]}" for key in keys), more]))


def test_a_task_loads_as_it_is() -> None:
    suite = suite_of(CHOICES)
    [task] = suite.tasks
    assert (suite.name, suite.groups) == ("hues", (TaskGroup("hues", ("hues",)),))
    assert (task.name, task.version) == ("hues", "2.0")
    assert (task.rows.hub_id, task.rows.config, task.rows.split) == ("org/colours", "warm", "validation")
    assert task.templates.choices == ("red", "green")
    assert task.scoring.output_type is OutputType.MULTIPLE_CHOICE
    assert task.scoring.target_delimiter == " "


def test_metrics_are_those_of_the_output_where_none_are_given() -> None:
    assert [metric.name for metric in task_of(CHOICES).scoring.metrics] == ["acc", "acc_norm"]
    assert [metric.name for metric in task_of(WORDS).scoring.metrics] == ["exact_match"]


def test_a_task_without_an_output_type_generates_up_to_an_empty_line() -> None:
    generation = task_of(WORDS).generation
    assert generation is not None
    assert (generation.until, generation.max_tokens, generation.temperature) == (("\n\n",), 256, 0.0)


@pytest.mark.parametrize(
    ("splits", "asked", "pool"),
    [
        (["training_split", "validation_split", "test_split", "fewshot_split"], "test", "dev"),
        (["training_split", "validation_split", "test_split"], "test", "train"),
        (["validation_split", "test_split"], "test", "validation"),
        (["test_split"], "test", "test"),
        (["training_split", "validation_split"], "validation", "train"),
        (["validation_split"], "validation", "validation"),
    ],
)
def test_the_test_split_is_asked_before_the_validation_split_and_examples_come_first_from_training(
    splits: list[str], asked: str, pool: str
) -> None:
    task = with_splits(*splits)
    assert task.fewshot_rows is not None
    assert (task.rows.split, task.fewshot_rows.split) == (asked, pool)


@pytest.mark.parametrize(
    ("splits", "more", "drops"),
    [
        (["training_split", "validation_split"], "", True),
        (["training_split", "test_split"], "", False),
        (["validation_split", "fewshot_split"], "", False),
        (["test_split"], "fewshot_split: test", True),
        (["test_split"], "fewshot_config: {split: test, sampler: first_n}", True),
    ],
)
def test_a_document_is_dropped_from_its_examples_where_pool_and_test_split_are_named_the_same(
    splits: list[str], more: str, *, drops: bool
) -> None:
    assert with_splits(*splits, more=more).fewshot.drops_document is drops


def test_examples_of_the_file_itself_are_the_pool_unless_a_split_is_named() -> None:
    samples = "fewshot_config: {sampler: first_n, samples: [{thing: sky, label: 0}]}\nnum_fewshot: 1\n"
    task = task_of(CHOICES + samples)
    assert task.fewshot_rows is None
    assert task.fewshot.samples == ({"thing": "sky", "label": 0},)
    assert task.fewshot.sampler is FewshotSampler.FIRST_N
    named = task_of(CHOICES + samples + "fewshot_split: train\n")
    assert (named.fewshot.samples, named.fewshot_rows is not None) == ((), True)


def test_examples_may_have_words_of_their_own() -> None:
    own = "{doc_to_text: '{{thing}}?', doc_to_target: '', target_delimiter: '-', fewshot_delimiter: '+'}"
    task = task_of(f"{WORDS}num_fewshot: 1\ntraining_split: train\nfewshot_config: {own}\n")
    assert task.templates.text.source == "Say {{word}}:"
    assert task.of_examples.templates.text.source == "{{thing}}?"
    assert task.of_examples.templates.target.source == ""
    assert task.of_examples.scoring.target_delimiter == "-"
    assert task.fewshot.delimiter == "+"
    assert task.generation is not None
    assert task.generation.until == ("\n\n",)


def test_a_text_as_a_flag_of_a_metric_is_true() -> None:
    task = task_of(f"{WORDS}metric_list: [{{metric: exact_match, ignore_punctuation: 'true - x'}}]\n")
    assert json.loads(task.scoring.metrics[0].options_json) == {"ignore_punctuation": True}


def test_limits_of_tokens_go_by_several_names() -> None:
    options = "generation_kwargs: {max_new_tokens: 5, max_tokens: 7, until: [a], do_sample: false}\n"
    generation = task_of(WORDS + options).generation
    assert generation is not None
    assert (generation.max_tokens, generation.until) == (5, ("a",))


@pytest.mark.parametrize(
    ("options", "temperature"),
    [
        ("do_sample: false, temperature: 1", 0),
        ("do_sample: true, temperature: 0, num_beams: 1", 0),
        ("do_sample: true, temperature: 0.5", 0.5),
        ("temperature: 0.5", 0.5),
    ],
)
def test_only_where_a_model_is_to_sample_the_temperature_counts(options: str, temperature: float) -> None:
    generation = task_of(WORDS + f"generation_kwargs: {{{options}}}\n").generation
    assert generation is not None
    assert generation.temperature == temperature


def test_how_texts_are_generated_says_nothing_of_choices() -> None:
    assert task_of(CHOICES + "generation_kwargs: {do_sample: false, until: []}\n").generation is None


def test_filters_have_the_defaults_they_have_there() -> None:
    pipelines = """\
filter_list:
  - name: vote
    filter: [{function: regex}, {function: majority_vote}, {function: take_first}]
"""
    [pipeline] = json.loads(task_of(WORDS + pipelines).scoring.filters_json)
    assert [step["function"] for step in pipeline["filter"]] == ["regex", "majority_vote"]
    assert pipeline["filter"][0]["regex_pattern"] == r"#### (\-?[0-9\.\,]+)"


def test_options_of_metrics_over_choices_are_not_read_as_they_are_not_there() -> None:
    listed = "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true, weight_by_size: true}]\n"
    [metric] = task_of(CHOICES + listed).scoring.metrics
    assert (metric.name, metric.options_json) == ("acc", "")


def test_included_keys_replace_whole_values() -> None:
    """There, a mapping of a higher file is not merged with that of a lower one."""
    base = "dataset_path: org/words\ntest_split: test\ndoc_to_text: w\ndoc_to_target: w\n"
    base += "generation_kwargs: {max_gen_toks: 9, until: [x]}\n"
    suite = suite_of("task: words\ninclude: _base.yaml\ngeneration_kwargs: {until: [y]}\n", _base_yaml=base)
    generation = suite.tasks[0].generation
    assert generation is not None
    assert (generation.max_tokens, generation.until) == (256, ("y",))


def test_a_group_becomes_a_suite_of_its_tasks_and_groups() -> None:
    text = """\
group: speech
task:
  - words
  - group: shades
    task:
      - {task: hues, num_fewshot: 2}
    aggregate_metric_list: {metric: acc, weight_by_size: false}
  - inner
aggregate_metric_list:
  - {metric: acc, aggregation: mean, filter_list: none, weight_by_size: truez}
metadata: {version: 1}
"""
    more = WORDS.replace("task: words", "task: more")
    inner = "group: inner\ntask: [more]\n"
    suite = suite_of(text, words_yaml=WORDS, hues_yaml=CHOICES, inner_yaml=inner, more_yaml=more)
    assert [(task.name, task.fewshot.num_fewshot) for task in suite.tasks] == [
        ("words", 0),
        ("hues", 2),
        ("more", 0),
    ]
    assert suite.groups == (
        TaskGroup("shades", ("hues",), (GroupMetric("acc", is_weighted_by_size=False),)),
        TaskGroup("inner", ("more",)),
        TaskGroup("speech", ("words", "hues", "more"), (GroupMetric("acc"),)),
    )


def test_members_are_found_by_name_tag_and_group_in_all_files_with_keys_of_their_groups() -> None:
    """Tasks of a tag come in the order of their names; keys of outer groups replace those of inner ones."""
    text = """\
group: speech
num_fewshot: 1
task:
  - colour_tasks
  - {group: inner, num_fewshot: 3}
  - group: social sciences (all)
    task: hues
    aggregate_metric_list: [{metric: acc}, {metric: f1}]
    metric_list: [{metric: acc}]
"""
    inner = (
        "group: inner\ntask: [{task: words, fewshot_delimiter: x}]\nnum_fewshot: 2\nfewshot_delimiter: z\n"
    )
    blue = CHOICES.replace("task: hues", "task: blue").replace("[colour_tasks]", "colour_tasks")
    included = "include: b.yaml\nnum_fewshot: 0\ntask: blue\n"
    found = suite_of(
        text.replace("    metric_list: [{metric: acc}]\n", ""),
        a_yaml=WORDS, b_yaml=CHOICES, c_yaml=included, d_yaml=inner, e_yaml=blue,
    )  # fmt: skip
    shown = [(task.name, task.fewshot.num_fewshot, task.fewshot.delimiter) for task in found.tasks]
    assert shown == [("blue", 1, "\n\n"), ("hues", 1, "\n\n"), ("words", 3, "x")]
    assert found.groups[:2] == (
        TaskGroup("inner", ("words",)),
        TaskGroup("social sciences (all)", ("hues",), (GroupMetric("acc"),)),
    )
    twice = faults_of(text, a_yaml=WORDS, b_yaml=CHOICES, c_yaml=included, d_yaml=inner)
    assert [problem for *_, problem in twice] == ["the task hues is there twice"]


def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    assert task_of(WORDS + "num_fewshot: 1\nnum_fewshot: 2\n").fewshot.num_fewshot == 2


def test_a_metric_by_code_is_summed_up_over_a_group_and_an_unknown_one_is_not() -> None:
    scored = WORDS + "metric_list: [{metric: mine}]\nprocess_results: !function utils.score\n"
    text = "group: a\ntask: [words]\naggregate_metric_list: [{metric: mine}, {metric: other}]\n"
    suite = suite_of(text, words_yaml=scored, utils_py="")
    assert suite.groups == (TaskGroup("a", ("words",), (GroupMetric("mine"),)),)


def test_groups_that_hold_each_other_end() -> None:
    found = faults_of("group: a\ntask: [b]\n", b_yaml="group: b\ntask: [c]\n", c_yaml="group: c\ntask: [b]\n")
    assert ("c.yaml", 2, "task.0", "goes round in a circle: b.yaml → c.yaml → b.yaml") in found


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("group: a\ntask: [b]\n", 2, "task.0", "folder has a task, a group or a tag b"),
        ("group: a\ntask: [{task: b, num_fewshot: 2}]\n", 2, "task.0.task", "has a task b, and there is no"),
        ("group: a\ntask: [3]\n", 2, "task.0", "a task is its name, or its keys and values"),
        ("group: a\n", 1, "task", "is missing: a group lists its tasks"),
        ("group: a/b\ntask: []\n", 1, "group", "does not match"),
        ("group: a\ntask: []\naggregate_metric_list: [{metric: 3}]\n", 3,
         "aggregate_metric_list.0.metric", "3 is none of acc"),
        ("group: a\ntask: []\naggregate_metric_list: [{metric: acc, aggregation: median}]\n", 3,
         "aggregate_metric_list.0.aggregation", "'mean' was expected"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_group_is_reported(text: str, line: int, key: str, problem: str) -> None:
    assert [(at, where) for _, at, where, reported in faults_of(text) if problem in reported] == [(line, key)]


@pytest.mark.parametrize(
    ("more", "key", "problem"),
    [
        ("process_docs: !function utils.process", "process_docs", "utils.py is not in the suite's folder"),
        ("process_docs: !function process", "process_docs", "its file is not in the suite's folder"),
        ("process_docs: utils.process", "process_docs", "only Python code can change rows"),
        ("process_results: !function utils.score", "process_results", "utils.py is not in"),
        ("metric_list: [{metric: !function utils.mine}]", "metric_list.0.metric", "utils.py is not in"),
        ("metric_list: [{metric: bleurt}]", "metric_list.0.metric", "'bleurt' is none of acc"),
        ("metric_list: [{metric: exact_match, k: 3}]", "metric_list.0.k", "there is no such key"),
        ("filter_list: [{name: a, filter: [{function: map}]}]", "filter_list.0.filter.0.mapping_dict", "is"),
        ("repeats: 8\nfilter_list: [{name: a, filter: [{function: take_first_k, k: 2}]}]", "repeats", "of 8"),
        ("repeats: 8\nfilter_list: [{name: a, filter: [{function: lowercase}]}]", "repeats", "leave several"),
        ("custom_dataset: !function utils.load", "custom_dataset", "utils.py is not in the suite's folder"),
        ("custom_dataset: utils.load", "custom_dataset", "only Python code can load rows"),
        ("generation_kwargs: {num_beams: 4}", "generation_kwargs.num_beams", "no server of models searches"),
        ("doc_to_image: image", "doc_to_image", "models are asked in text only"),
        ("code: {}", "code", "unsafe_code: true says so"),
        ("metric_list: [{metric: pass@1}]", "metric_list.0.metric", "pass@1 needs code"),
        ("code: {answer: best}\nunsafe_code: true", "code.answer", "'best' is none of whole"),
        ("use_prompt: a/b", "use_prompt", "not taken from promptsource"),
        ("dataset_kwargs: {data_dir: x}", "dataset_kwargs.data_dir", "rows are read without this option"),
        ("description: '{{x'", "description", "template error"),
        ("fewshot_config: {sampler: !function utils.Own}", "fewshot_config.sampler", "utils.py is not in"),
        ("fewshot_config: {doc_to_text: !function a.b}", "fewshot_config.doc_to_text", "a.py is not in"),
        ("recipe: x", "recipe", "lm-evaluation-harness has no such key"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_says_why_and_where(more: str, key: str, problem: str) -> None:
    found = faults_of(WORDS + more)
    [(_, line, reported, sentence)] = [one for one in found if one[2] == key]
    assert (line, reported) == (6, key)
    assert problem in sentence


def test_code_is_executed_where_the_file_says_so() -> None:
    text = "unsafe_code: true\ncode: {prefix: '{{question}}', timeout: 5}\nmetric_list: [{metric: pass@1}]\n"
    code = task_of(WORDS + text).code
    assert code is not None
    assert (code.answer, code.timeout_seconds) == (CodeAnswer.WHOLE, 5)
    assert task_of(WORDS + "unsafe_code: true\n").code is None


def test_keys_without_effect_may_be_empty() -> None:
    text = "process_docs: ''\nunsafe_code: false\nrepeats: 1\ntraining_split: null\ngeneration_kwargs: null\n"
    assert task_of(WORDS + text + "gen_prefix: ''\n").name == "words"


@pytest.mark.parametrize(
    ("output_type", "metrics"),
    [
        ("loglikelihood", ["acc", "perplexity"]),
        ("loglikelihood_rolling", ["word_perplexity", "byte_perplexity", "bits_per_byte"]),
    ],
)
def test_given_texts_have_perplexities_by_default_and_no_generation(
    output_type: str, metrics: list[str]
) -> None:
    task = task_of(WORDS + f"output_type: {output_type}\ngeneration_kwargs: {{until: ['.']}}\n")
    assert (task.scoring.output_type, task.generation) == (OutputType(output_type), None)
    assert [use.name for use in task.scoring.metrics] == metrics


def test_a_task_of_python_code_is_reported_to_be_one() -> None:
    text = "task: mine\ngroup: ours\nclass: !function task.Mine\n"
    [(_, line, key, sentence)] = faults_of(text)
    assert (line, key) == (3, "class")
    assert "run it in lm-evaluation-harness, and import its log" in sentence


def test_a_task_needs_a_split_that_can_be_asked() -> None:
    text = WORDS.replace("test_split: test", "training_split: train")
    [(_, line, key, problem)] = faults_of(text)
    assert (line, key) == (2, "dataset_path")
    assert "a test_split or validation_split is needed" in problem


def test_rows_of_a_file_that_is_nowhere_are_reported_at_the_key_that_names_it() -> None:
    text = WORDS.replace("org/words", "json")
    assert [(line, key) for _, line, key, _ in faults_of(text)] == [(2, "dataset_path")]
    named = text + "dataset_kwargs: {data_files: {test: a.jsonl}}\n"
    assert faults_of(named) == [
        ("", 6, "dataset_kwargs", "attach a.jsonl: it was not sent with the document")
    ]
