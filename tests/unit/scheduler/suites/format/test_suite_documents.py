"""Suites with inline tasks, includes and groups; and every fault with its file, line and key."""

import json
from itertools import pairwise
from textwrap import indent

import pytest

from proctor.values.judging.named_judge import NamedJudge
from proctor.values.sample import MAX_SUITE_BYTES
from proctor.values.scoring import GroupMetric, TaskGroup
from services.scheduler.suites.format.suite_document import SuiteDocument, path_problem
from services.scheduler.suites.format.yaml_suite_reader import read_document
from tests.fakes.suites.suite_documents import TASK, faults_of, suite_of

BASE = TASK.replace("task: colours\n", "")


def in_suite(task: str = TASK, rest: str = "") -> str:
    """A suite of this task alone, which begins in line 3."""
    return f"suite: mine\ntasks:\n  -\n{indent(task, '    ')}{rest}"


def task_faults(changed: str, rest: str = "") -> list[tuple[int, str, str]]:
    """Line within the task, key within the task and problem, of a task with this line changed or added."""
    key = changed.partition(":")[0]
    lines = [line for line in TASK.splitlines() if not line.startswith(f"{key}:")]
    text = "\n".join([changed, *lines, rest])
    return [(line, key, problem) for _, line, key, problem in faults_of(text)]


def test_tasks_may_be_written_in_the_suite() -> None:
    second = TASK.replace("colours", "shapes").replace("red, green", "round, square")
    suite = suite_of(
        f"suite: mine\ndescription: Two.\ntasks:\n  -\n{indent(TASK, '    ')}\n  - shapes\n",
        shapes_yaml=second,
    )
    assert (suite.name, suite.description) == ("mine", "Two.")
    assert [(task.name, task.templates.choices) for task in suite.tasks] == [
        ("colours", ("red", "green")),
        ("shapes", ("round", "square")),
    ]
    assert suite.groups == (TaskGroup("mine", ("colours", "shapes")),)


def test_a_suite_names_the_judges_of_its_runs() -> None:
    judges = "judges:\n  - {model: openai/judge}\n  - {model: vllm/other, prompt: helpfulness, scale: 1-3}\n"
    assert suite_of(in_suite(rest=judges)).judges == (
        NamedJudge("openai/judge"),
        NamedJudge("vllm/other", "helpfulness", "1-3"),
    )
    assert suite_of(in_suite()).judges == ()


@pytest.mark.parametrize("judge", ["{prompt: style}", "{model: 3}", "{model: a/b, temperature: 0}", "a/b"])
def test_a_judge_in_another_form_is_a_fault(judge: str) -> None:
    [fault] = faults_of(in_suite(rest=f"judges: [{judge}]\n"))
    assert fault[2].startswith("judges.0"), fault


def test_a_single_task_is_a_suite_of_its_name() -> None:
    suite = suite_of(TASK)
    assert (suite.name, suite.groups) == ("colours", (TaskGroup("colours", ("colours",)),))


def test_included_mappings_merge_and_all_else_is_replaced_along_the_chain() -> None:
    suite = suite_of(
        "task: colours\ninclude: middle.yaml\ndataset: {config: warm}\nmetric_list: [{metric: f1}]\n",
        middle_yaml="include: base.yaml\ndataset: {split: test}\nversion: '2'\n",
        base_yaml=BASE,
    )
    [task] = suite.tasks
    assert (task.rows.hub_id, task.rows.config, task.rows.split) == ("org/colours", "warm", "test")
    assert (task.version, [metric.name for metric in task.scoring.metrics]) == ("2", ["f1"])


def test_of_several_included_files_the_later_one_counts() -> None:
    suite = suite_of(
        "task: colours\ninclude: [base.yaml, other.yaml]\n", base_yaml=BASE, other_yaml="version: '9'"
    )
    assert suite.tasks[0].version == "9"


def test_the_digest_of_a_task_covers_what_it_includes() -> None:
    text = "task: colours\ninclude: base.yaml\n"
    before = suite_of(text, base_yaml=BASE).tasks[0].definition_digest
    assert suite_of(text, base_yaml=BASE).tasks[0].definition_digest == before
    changed = suite_of(text, base_yaml=BASE.replace("}} is", "}} looks")).tasks[0].definition_digest
    assert changed != before


def test_groups_are_summed_up_and_the_suite_last() -> None:
    rest = """\
groups:
  - {group: warm, tasks: [colours], aggregate_metric_list: [{metric: acc, weight_by_size: false}]}
  - {group: all_of_them, tasks: [colours]}
aggregate_metric_list: [{metric: acc}]
"""
    assert suite_of(in_suite(rest=rest)).groups == (
        TaskGroup("warm", ("colours",), (GroupMetric("acc", is_weighted_by_size=False),)),
        TaskGroup("all_of_them", ("colours",)),
        TaskGroup("mine", ("colours",), (GroupMetric("acc"),)),
    )


def test_groups_that_cannot_be_are_reported_where_they_are() -> None:
    rest = """\
groups:
  - {group: colours, tasks: [colours]}
  - {group: warm, tasks: [colours, shapes]}
  - group: cold
    tasks: [colours]
    aggregate_metric_list: [{metric: mcc}]
aggregate_metric_list: [{metric: f1}]
"""
    assert faults_of(in_suite(rest=rest)) == [
        ("", 13, "groups.0.group", "the name colours is taken by the suite, a task or a group"),
        ("", 14, "groups.1.tasks.1", "the suite has no task shapes"),
        ("", 17, "groups.2.aggregate_metric_list.0.metric", "no task of cold has mcc"),
        ("", 18, "aggregate_metric_list.0.metric", "no task of mine has f1"),
    ]


def test_fewshot_seed_samples_and_the_texts_beside_choices_are_read() -> None:
    more = """\
fewshot_config: {seed: 7, samples: [{thing: sky, label: 1}, {thing: rose, label: 0}]}
num_fewshot: 2
doc_to_answers: "{{names}}"
doc_to_choice_text: "{{words}}"
"""
    [task] = suite_of(TASK.replace(", fewshot_split: train", "") + more).tasks
    assert task.fewshot.seed == 7
    assert task.fewshot.samples == ({"thing": "sky", "label": 1}, {"thing": "rose", "label": 0})
    assert task.templates.answers is not None
    assert task.templates.choice_texts is not None


def test_a_list_of_targets_is_a_list_of_right_choices() -> None:
    [task] = suite_of(TASK.replace("doc_to_target: label", "doc_to_target: [1, 0]")).tasks
    assert task.templates.target_indexes == (1, 0)
    assert task.templates.target.source == "1"


def test_what_a_metric_is_anyway_may_be_said_and_is_no_option() -> None:
    listed = "metric_list: [{metric: f1, aggregation: f1, higher_is_better: true, average: macro}]"
    [task] = suite_of(TASK.replace("metric_list: [{metric: acc}]", listed)).tasks
    [metric] = task.scoring.metrics
    assert json.loads(metric.options_json) == {"average": "macro"}


@pytest.mark.parametrize(
    ("changed", "key", "problem"),
    [
        ("doc_to_target: 2", "doc_to_target", "the label 2 is none of the 2 choices"),
        ("doc_to_target: [0, 5]", "doc_to_target.1", "the label 5 is none of the 2 choices"),
        ("doc_to_wrong_target: wrong", "doc_to_wrong_target", "only generate_until has it"),
        ("metric_list: [{metric: pearson}]", "metric_list.0.metric", "pearson does not fit output_type"),
        ("metric_list: [{metric: squad_f1}]", "metric_list.0.metric", "squad_f1 needs doc_to_answers"),
        ("metric_list: [{metric: acc}, {metric: acc}]", "metric_list.1.metric", "acc is there twice"),
        ("metric_list: [{metric: acc, aggregation: f1}]", "metric_list.0.aggregation", "summed up by mean"),
        ("metric_list: [{metric: acc, higher_is_better: no}]", "metric_list.0.higher_is_better", "more"),
        ("metric_list: [{metric: acc, average: macro}]", "metric_list.0.average", "acc has no such option"),
        ("metric_list: [{metric: exact_match, ignore_case: 1}]", "metric_list.0.ignore_case", "1 is not"),
        ("version: 1.0", "version", "1.0 is not of type 'string'"),
        ("dataset: {id: a/b}", "dataset", "'split' is a dependency of 'id'"),
        ("dataset: {file: ../rows.jsonl}", "dataset.file", "does not lie in the suite's folder"),
        ("dataset: {file: rows.txt}", "dataset.file", "read: .jsonl, .json, .csv, .tsv, .parquet"),
        ("dataset: {file: rows.jsonl}", "dataset.file", "attach rows.jsonl: it was not sent"),
        ("dataset: {id: /etc, split: train}", "dataset.id", "is not the name of a data set of the hub"),
        ("doc_to_text: '{{ thing '", "doc_to_text", "template error"),
        ("doc_to_txt: x", "doc_to_txt", "there is no such key; did you mean doc_to_text?"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_given_with_its_key(changed: str, key: str, problem: str) -> None:
    found = task_faults(changed)
    assert (1, key) in [(line, reported) for line, reported, _ in found]
    assert any(problem in sentence for _, _, sentence in found)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("num_fewshot: 3", "there are no examples: name fewshot_split"),
        ("num_fewshot: 3\nfewshot_config: {samples: [{a: 1}]}", "fewshot_config.samples has only 1 rows"),
    ],
)
def test_examples_must_come_from_somewhere(more: str, problem: str) -> None:
    [(_, line, key, reported)] = faults_of(TASK.replace(", fewshot_split: train", "") + more)
    assert (line, key) == (9, "num_fewshot")
    assert problem in reported


def test_examples_come_from_one_source() -> None:
    [(_, line, key, reported)] = faults_of(TASK + "fewshot_config: {samples: [{a: 1}]}")
    assert (line, key) == (9, "fewshot_config.samples")
    assert "not from both" in reported


def test_a_metric_of_single_labels_is_refused_where_several_choices_are_right() -> None:
    listed = "metric_list: [{metric: mcc}]"
    text = TASK.replace("metric_list: [{metric: acc}]", listed).replace("label", "[0, 1]")
    assert [problem for *_, problem in faults_of(text)] == [
        "mcc has no figure where several choices are right"
    ]


GENERATION = """\
task: say
version: "1"
dataset: {id: org/words, split: test}
output_type: generate_until
doc_to_text: word
doc_to_target: word
metric_list: [{metric: exact_match}]
"""


@pytest.mark.parametrize(
    ("more", "key", "problem"),
    [
        ("generation_kwargs: {do_sample: true}", "generation_kwargs.do_sample", "contradicts the"),
        ("generation_kwargs: {do_sample: false, temperature: 1}", "generation_kwargs.do_sample", "contra"),
        ("filter_list: [{name: a, filter: [{function: majority_vote}, {function: lowercase}]}]",
         "filter_list.0.filter.0", "majority_vote is the last step"),
        ("filter_list: [{name: a, filter: [&x {function: lowercase}]}, {name: a, filter: [*x]}]",
         "filter_list.1.name", "a is there twice"),
        ("doc_to_answers: x", "doc_to_answers", "only multiple_choice has it"),
        ("num_fewshot: 1\nfewshot_config: {samples: []}", "fewshot_config.samples", "[] should be non-empty"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_generation_is_reported(more: str, key: str, problem: str) -> None:
    [(_, line, reported, sentence)] = faults_of(GENERATION + more)
    assert (reported, line >= 8) == (key, True)
    assert problem in sentence


def test_all_faults_are_reported_in_the_order_of_the_lines() -> None:
    text = in_suite(
        TASK.replace("label", "7").replace("version", "vresion").replace("{metric: acc}", "{metric: pearson}")
    )
    found = faults_of(text + "descripton: x\n")
    assert [(line, key) for _, line, key, _ in found] == [
        (4, "tasks.0.version"),
        (5, "tasks.0.vresion"),
        (10, "tasks.0.doc_to_target"),
        (11, "tasks.0.metric_list.0.metric"),
        (12, "descripton"),
    ]
    assert found[0][3] == "is missing"


def test_a_problem_of_an_included_file_is_reported_there_and_once() -> None:
    two = "suite: mine\ntasks:\n  - {task: a, include: base.yaml}\n  - {task: b, include: base.yaml}\n"
    assert faults_of(two, base_yaml=BASE.replace("label", "7")) == [
        ("base.yaml", 6, "doc_to_target", "the label 7 is none of the 2 choices, which are counted from 0")
    ]


@pytest.mark.parametrize(
    ("files", "key", "problem"),
    [
        ({}, "include", "a.yaml cannot be read (attach it: it was not sent with the document)"),
        ({"a_yaml": "include: b.yaml", "b_yaml": "include: a.yaml"},
         "include", "goes round in a circle: a.yaml → b.yaml → a.yaml"),
        ({"a_yaml": "[1]"}, "include", "a.yaml holds no keys and values"),
    ],
)  # fmt: skip
def test_an_include_that_cannot_be_had_is_the_only_problem(
    files: dict[str, str], key: str, problem: str
) -> None:
    [(_, _, reported, sentence)] = faults_of("task: colours\ninclude: a.yaml\n", **files)
    assert reported == key
    assert problem in sentence


@pytest.mark.parametrize("path", ["../other.yaml", "/etc/passwd", "a/../../b.yaml", "..\\b.yaml", ""])
def test_an_include_stays_in_the_folder(path: str) -> None:
    [(_, line, key, problem)] = faults_of(f"task: colours\ninclude: '{path}'\n")
    assert (line, key) == (2, "include")
    assert "does not lie in the suite's folder" in problem or problem == "'.' is not a plain path"


def test_files_that_include_each_other_by_the_dozen_end() -> None:
    files = {f"f{low}_yaml": f"include: [f{high}.yaml, f{high}.yaml]" for low, high in pairwise(range(40))}
    assert any(
        "build on each other" in problem for *_, problem in faults_of("task: a\ninclude: f0.yaml\n", **files)
    )


@pytest.mark.parametrize(
    ("text", "line", "key", "problem"),
    [
        ("suite: mine\ntasks: []\n", 2, "tasks", "[] should be non-empty"),
        (
            "suite: mine\ntasks: [shapes]\n",
            2,
            "tasks.0",
            "shapes.yaml cannot be read (attach it: it was not sent with the document)",
        ),
        ("suite: mine\ntasks: [../x]\n", 2, "tasks.0", "'../x' does not match"),
        ("suite: mine\ntasks: [3]\n", 2, "tasks.0", "3 is not of type 'string', 'object'"),
        ("suite: m@2\ntasks: [a]\n", 1, "suite", "does not match"),
        ("description: x\n", 1, "", "a suite, a task, or a group of lm-evaluation-harness is needed"),
        ("just words\n", 1, "", "the document holds no keys and values"),
    ],
)
def test_what_is_no_suite_is_reported(text: str, line: int, key: str, problem: str) -> None:
    reported = [(at, where) for _, at, where, sentence in faults_of(text) if problem in sentence]
    assert reported == [(line, key)]


def test_a_task_that_is_there_twice_is_reported_at_the_second() -> None:
    text = in_suite() + "  -\n" + indent(TASK, "    ")
    assert faults_of(text) == [("", 13, "tasks.1.task", "the task colours is there twice")]


def test_a_key_that_is_there_twice_is_reported_and_nothing_that_follows_from_it() -> None:
    assert faults_of(TASK + "doc_to_target: 9\n") == [("", 9, "doc_to_target", "this key is there twice")]


def test_a_file_must_be_called_as_its_task() -> None:
    assert faults_of("suite: mine\ntasks: [shapes]\n", shapes_yaml=TASK) == [
        ("shapes.yaml", 1, "task", "'colours' is not the name of its file")
    ]


def test_a_suite_of_too_many_tasks_is_refused() -> None:
    text = "suite: mine\ntasks:\n" + "".join(f"- {{task: t{n}, include: base.yaml}}\n" for n in range(1001))
    assert any("at most 1000 tasks" in problem for *_, problem in faults_of(text, base_yaml=BASE))


def test_of_very_many_faults_the_first_are_reported() -> None:
    many_keys = TASK + "".join(f"key{number}: 1\n" for number in range(5000))
    assert len(faults_of(many_keys)) == 100
    many_tasks = "suite: mine\ntasks:\n" + "".join(f"- {{task: t{number}}}\n" for number in range(300))
    found = faults_of(many_tasks)
    assert len(found) == 201
    assert found[-1][3] == "1600 more faults are not listed"


def test_a_document_that_is_too_large_is_refused_unread() -> None:
    reading = read_document(SuiteDocument("[" * (MAX_SUITE_BYTES + 1)))
    [fault] = reading.faults
    assert "more than 3145728 bytes" in fault.problem
    many = SuiteDocument(TASK, files={f"{number}.jsonl": b"" for number in range(501)})
    assert "in 500 files" in read_document(many).faults[0].problem


@pytest.mark.parametrize(
    "path", ["/etc/x", "../x", "a/../../x", "a//x", "./x", "", "a\nb", "C:\\x", "a\\b", "."]
)
def test_files_of_users_have_plain_paths_within_the_folder(path: str) -> None:
    assert path_problem(path)
    reading = read_document(SuiteDocument(TASK, files={path: b""}))
    assert [fault.file for fault in reading.faults] == [path]


@pytest.mark.parametrize("path", ["rows.jsonl", "data/rows.csv", "_base.yaml", "a b.jsonl", "é.jsonl"])
def test_usual_paths_are_fine(path: str) -> None:
    assert path_problem(path) == ""


def test_a_name_of_the_installation_is_taken() -> None:
    reading = read_document(SuiteDocument(TASK), taken_names={"colours"})
    [fault] = reading.faults
    assert (fault.line, fault.field) == (1, "task")
    assert fault.problem == "colours is an installed suite; choose another name"


def test_the_digest_of_a_document_is_that_of_its_text_and_files() -> None:
    digests = {
        SuiteDocument("ab", files={"c": b"d"}).digest,
        SuiteDocument("ab", files={"c": b"dd"}).digest,
        SuiteDocument("a", files={"bc": b"d"}).digest,
        SuiteDocument("ab", files={"d": b"c"}).digest,
    }
    assert len(digests) == 4
    assert SuiteDocument("ab", "x.yaml").digest == SuiteDocument("ab", "y.yaml").digest
