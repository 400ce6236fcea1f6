"""Tasks that name Python code: which functions and files they have, and what names them."""

import json
from pathlib import Path

import pytest

from proctor.code_files import code_files
from proctor.values.scoring import MetricUse
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite
from services.scheduler.suites.rows.task_code import TaskCode
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.suites.yaml_installed_suites import load_suites, reload_suites
from tests.fakes.suites.suite_documents import faults_of

TASK = """\
task: words
dataset_path: org/words
training_split: train
test_split: test
process_docs: !function utils.process
doc_to_text: !function utils.text
doc_to_target: "{{word}}"
"""


def task_of(files: dict[str, str], root: str = "suite.yaml") -> TaskDefinition:
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "missing")
        return files[path].encode()

    reading = read_suite(SuiteFiles(read, root, lambda: files), Path(), NameRule())
    assert not reading.faults
    assert reading.suite is not None
    [task] = reading.suite.tasks
    return task


def code_of(task: TaskDefinition) -> TaskCode:
    assert task.rows.code is not None
    return task.rows.code


def test_a_task_has_its_functions_and_files() -> None:
    task = task_of(
        {"suite.yaml": TASK, "utils.py": "from .more import text\n", "more.py": "", "other.py": ""}
    )
    code = code_of(task)
    assert [(each.key, each.path, each.function) for each in code.functions] == [
        ("process_docs", "utils.py", "process"),
        ("doc_to_text", "utils.py", "text"),
    ]
    assert (code.task, set(code.files)) == ("words", {"utils.py", "more.py"})
    assert task.has_code
    assert task.templates.text.source == "!function utils.py:text"


CUSTOM = """\
task: words
custom_dataset: !function utils.load
dataset_kwargs: {length: 5}
training_split: train
test_split: test
doc_to_text: "{{word}}"
doc_to_target: "{{word}}"
metadata: {version: 1.0}
"""


def test_rows_may_come_from_code_alone() -> None:
    task = task_of({"suite.yaml": CUSTOM, "utils.py": ""})
    code = code_of(task)
    assert [(each.key, each.function) for each in code.functions] == [("custom_dataset", "load")]
    assert json.loads(code.arguments) == {"length": 5, "version": 1.0}
    assert task.fewshot_rows is not None
    assert (task.rows.hub_id, task.rows.split) == ("", "test")
    assert (task.fewshot_rows.hub_id, task.fewshot_rows.split) == ("", "train")
    assert task.fewshot_rows.code == code


def test_what_code_loads_is_part_of_what_a_task_is() -> None:
    digests = {
        task_of({"suite.yaml": CUSTOM.replace("length: 5", length), "utils.py": ""}).definition_digest
        for length in ("length: 5", "length: 6")
    }
    assert len(digests) == 2


def test_examples_are_made_by_the_same_code() -> None:
    task = task_of({"suite.yaml": TASK, "utils.py": ""})
    assert task.fewshot_rows is not None
    assert task.fewshot_rows.code == task.rows.code


def test_examples_may_have_code_of_their_own() -> None:
    own = "fewshot_config: {doc_to_text: !function utils.shown, doc_to_target: word}\n"
    task = task_of({"suite.yaml": TASK + own, "utils.py": ""})
    assert task.fewshot_rows is not None
    assert task.fewshot_rows.code is not None
    assert [(each.key, each.function) for each in task.fewshot_rows.code.functions] == [
        ("process_docs", "process"),
        ("doc_to_text", "shown"),
    ]
    assert task.templates.text.source == "!function utils.py:text"
    assert task.of_examples.templates.text.source == "!function utils.py:shown"
    assert task.of_examples.templates.target.source == "word"


@pytest.mark.parametrize("samples", ["!function utils.samples", "[{word: a}]"])
def test_examples_of_the_file_are_asked_by_its_code_and_not_processed(samples: str) -> None:
    task = task_of(
        {"suite.yaml": f"{TASK}num_fewshot: 1\nfewshot_config: {{samples: {samples}}}\n", "utils.py": ""}
    )
    assert task.fewshot_rows is not None
    assert task.fewshot_rows.is_written
    assert task.fewshot_rows.samples == (() if "function" in samples else ({"word": "a"},))
    assert task.fewshot_rows.code is not None
    keys = [each.key for each in task.fewshot_rows.code.functions]
    assert keys == (["doc_to_text", "samples"] if "function" in samples else ["doc_to_text"])


def test_a_sampler_has_the_functions_that_word_examples() -> None:
    own = "fewshot_config: {sampler: !function draws.Own, doc_to_target: !function utils.target}\n"
    files = {"suite.yaml": TASK + own, "utils.py": "", "draws.py": "A = 1\n"}
    task = task_of(files)
    assert task.fewshot.code is not None
    assert task.rows.code is not None
    assert [(each.key, each.path, each.function) for each in task.fewshot.code.functions] == [
        ("sampler", "draws.py", "Own"),
        ("doc_to_text", "utils.py", "text"),
        ("doc_to_target", "utils.py", "target"),
    ]
    assert set(task.rows.code.files) == {"utils.py"}
    assert set(task.code_keys) == {"process_docs", "doc_to_text", "doc_to_target", "sampler"}
    changed = task_of({**files, "draws.py": "A = 2\n"})
    assert changed.definition_digest != task.definition_digest


def test_a_sampler_may_be_all_the_code_of_a_task() -> None:
    text = TASK.replace("process_docs: !function utils.process\n", "").replace("!function utils.text", "word")
    own = "num_fewshot: 1\nfewshot_config: {sampler: !function utils.Own, samples: [{word: a}]}\n"
    task = task_of({"suite.yaml": text + own, "utils.py": ""})
    assert task.code_keys == ("sampler",)
    assert (task.rows.code, task.fewshot_rows, task.fewshot.samples) == (None, None, ({"word": "a"},))


def test_a_function_is_looked_for_beside_the_file_that_names_it() -> None:
    files = {
        "suite.yaml": "include: own/task.yaml\n",
        "own/task.yaml": f"include: ../base.yaml\n{TASK}".replace(
            "process_docs: !function utils.process\n", ""
        ),
        "base.yaml": "process_docs: !function utils.process\n",
        "own/utils.py": "",
        "utils.py": "",
    }
    functions = code_of(task_of(files)).functions
    assert [(each.key, each.path) for each in functions] == [
        ("process_docs", "utils.py"),
        ("doc_to_text", "own/utils.py"),
    ]


def test_a_function_may_be_named_from_the_root() -> None:
    text = "process_docs: !function lm_eval.tasks.shared.rows.process\n"
    files = {
        "suite.yaml": "include: own/task.yaml\n",
        "own/task.yaml": TASK.replace("process_docs: !function utils.process\n", text),
        "own/utils.py": "",
        "shared/rows.py": "",
    }
    assert code_of(task_of(files)).functions[0].path == "shared/rows.py"


def test_an_overridden_function_is_no_code_of_the_task() -> None:
    files = {"suite.yaml": f"include: base.yaml\n{TASK}doc_to_target: word\n", "utils.py": ""}
    files["base.yaml"] = "doc_to_target: !function gone.target\n"
    assert [each.key for each in code_of(task_of(files)).functions] == ["process_docs", "doc_to_text"]


@pytest.mark.parametrize("changed", ["utils.py", "more.py"])
def test_the_digest_covers_each_file_of_the_code(changed: str) -> None:
    files = {"suite.yaml": TASK, "utils.py": "from .more import text\n", "more.py": "A = 1\n", "other.py": ""}
    digest = task_of(files).definition_digest
    assert task_of({**files, "other.py": "B = 2\n"}).definition_digest == digest
    assert task_of({**files, changed: files[changed] + "B = 2\n"}).definition_digest != digest


def test_a_text_of_code_that_can_name_no_file_is_only_a_text() -> None:
    code = "NAMES = ['\\ud800.json', 'a\\0.json', '../x.json', '/etc/x.json']\n"
    assert set(code_of(task_of({"suite.yaml": TASK, "utils.py": code})).files) == {"utils.py"}


def test_an_installed_suite_is_read_again_when_its_code_changes(tmp_path: Path) -> None:
    (tmp_path / "words.yaml").write_text(TASK)
    (tmp_path / "utils.py").write_text("A = 1\n")
    before = load_suites(tmp_path)
    assert reload_suites(before) is before
    (tmp_path / "utils.py").write_text("A = 100\n")
    after = reload_suites(before)
    assert code_of(after.suite("words").tasks[0]).files == {"utils.py": b"A = 100\n"}


def test_files_that_import_each_other_end() -> None:
    files = {"a/x.py": b"from . import y", "a/y.py": b"import lm_eval.tasks.a.x, os", "a/z.py": b""}

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    assert set(code_files("a/x.py", read)) == {"a/x.py", "a/y.py"}
    files["a/x.py"] = b"def broken(:"
    assert set(code_files("a/x.py", read)) == {"a/x.py"}


SCORED = """\
task: words
dataset_path: org/words
test_split: test
doc_to_text: "{{word}}"
doc_to_target: "{{word}}"
"""
METRICS = """\
metric_list:
  - {metric: exact_match}
  - {metric: !function utils.length, aggregation: mean, factor: 2}
  - {metric: f1, aggregation: !function utils.agg}
  - {metric: contains, aggregation: !function utils.agg}
"""


def test_code_scores_and_sums_up_metrics_in_their_order() -> None:
    task = task_of({"suite.yaml": SCORED + METRICS, "utils.py": "import more\n", "more.py": ""})
    assert task.scoring.metrics == (
        MetricUse("exact_match"),
        MetricUse("length", '{"factor": 2}', "utils.py:length"),
        MetricUse("f1", "", "", "utils.py:agg"),
        MetricUse("contains", "", "", "utils.py:agg"),
    )
    assert task.scoring_code is not None
    assert set(task.scoring_code.files) == {"utils.py", "more.py"}
    assert (task.rows.code, task.code_keys) == (None, ("metric_list",))


def test_process_results_gives_all_metrics() -> None:
    given = (
        SCORED
        + "process_results: !function utils.score\nmetric_list: [{metric: acc}, {metric: exact_match}]\n"
    )
    task = task_of({"suite.yaml": given, "utils.py": ""})
    assert task.scoring.process_results == "utils.py:score"
    assert task.scoring.metrics == (MetricUse("acc"), MetricUse("exact_match"))
    assert task.code_keys == ("process_results",)


def test_a_metric_of_which_less_is_better_stands_behind_another() -> None:
    listed = "[{metric: bias, higher_is_better: false}, {metric: acc, higher_is_better: true}]"
    given = f"{SCORED}process_results: !function utils.score\nmetric_list: {listed}\n"
    task = task_of({"suite.yaml": given, "utils.py": ""})
    assert task.scoring.metrics == (MetricUse("acc"), MetricUse("bias", less_is_better=True))


def test_the_code_that_scores_is_part_of_both_digests() -> None:
    given = SCORED + METRICS
    first, second = (task_of({"suite.yaml": given, "utils.py": text}) for text in ("", "# more\n"))
    assert first.definition_digest != second.definition_digest
    assert first.scoring.code_digest != second.scoring.code_digest


FILTERS = """\
filter_list:
  - name: own
    filter: [{function: !function utils.Mine, group_select: -1}, {function: take_first}]
  - name: cut
    filter: [{function: remove_whitespace}, {function: custom, filter_fn: !function utils.cut}]
"""


def test_filters_by_code_are_steps_that_name_it() -> None:
    plain = TASK.replace(
        "process_docs: !function utils.process\ndoc_to_text: !function utils.text", "doc_to_text: a"
    )
    task = task_of({"suite.yaml": plain + FILTERS, "utils.py": "from .more import Mine\n", "more.py": ""})
    own, cut = (pipeline["filter"] for pipeline in json.loads(task.scoring.filters_json))
    assert own == [
        {"function": "custom", "code": "utils.py:Mine", "options": {"group_select": -1}},
        {"function": "take_first"},
    ]
    assert cut[1] == {"function": "custom", "code": "utils.py:cut", "options": {}}
    assert task.scoring_code is not None
    assert task.scoring_code.files.keys() == {"utils.py", "more.py"}
    assert task.code_keys == ("filter_list",)
    other = task_of({"suite.yaml": plain + FILTERS, "utils.py": "from .more import Mine\n", "more.py": "x=1"})
    assert other.definition_digest != task.definition_digest
    assert other.scoring.code_digest != task.scoring.code_digest


def test_a_filter_that_a_file_of_the_task_registers_is_its_class() -> None:
    registered = "@register_filter('Mine_by_name')\nclass Mine: pass\n"
    listed = "filter_list: [{name: own, filter: [{function: Mine_by_name, group_select: -1}]}]\n"
    task = task_of({"suite.yaml": TASK + listed, "utils.py": registered})
    [pipeline] = json.loads(task.scoring.filters_json)
    step = {"function": "custom", "code": "utils.py:Mine", "options": {"group_select": -1}}
    assert pipeline["filter"] == [step]


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (
            "{function: !function utils.A}, {function: lowercase}, {function: !function utils.A}",
            "steps by code follow",
        ),
        ("{function: !function gone.A}", "!function gone.A: gone.py is not in the suite's folder"),
        ("{function: custom, filter_fn: cut}", "'custom' is none of regex, "),
    ],
)
def test_filters_that_cannot_be_executed_say_why(steps: str, problem: str) -> None:
    files = {"suite.yaml": f"{TASK}filter_list: [{{name: a, filter: [{steps}]}}]\n", "utils.py": ""}

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "missing")
        return files[path].encode()

    [fault] = read_suite(SuiteFiles(read, "suite.yaml", lambda: files), Path(), NameRule()).faults
    assert fault.problem.startswith(problem)


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ("metric: !function utils.a, aggregation: median", "median: what code scores is summed up by mean, "),
        ("metric: !function gone.a", "!function gone.a: gone.py is not in the suite's folder"),
    ],
)
def test_what_code_cannot_score_says_why(metric: str, problem: str) -> None:
    files = {"suite.yaml": f"{SCORED}metric_list: [{{{metric}}}]\n", "utils.py": ""}

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "missing")
        return files[path].encode()

    [fault] = read_suite(SuiteFiles(read, "suite.yaml", lambda: files), Path(), NameRule()).faults
    assert fault.problem.startswith(problem)
    assert fault.line == 6


@pytest.mark.parametrize(
    ("load", "keys"),
    [
        ("return made(**given)", ["custom_dataset"]),
        ("return [Maker().rows()]", ["custom_dataset"]),
        ("return {}", []),
    ],
)
def test_rows_that_are_made_with_a_tokenizer_are_refused(load: str, keys: list[str]) -> None:
    loader = f"from .more import made, Maker\ndef load(**given):\n    {load}\n"
    more = (
        "def made(**_): return tokenizer()\n"
        "class Maker:\n    def rows(self): return tokenizer()\n"
        "def tokenizer():\n    return AutoTokenizer.from_pretrained('m')\n"
    )
    rest = "test_split: test\ndoc_to_text: a\ndoc_to_target: b\n"
    text = f"task: rows\ncustom_dataset: !function utils.load\n{rest}"
    found = faults_of(text, utils_py=loader, more_py=more)
    sentence = "its code makes rows with the tokenizer of a model"
    assert [key for _, _, key, said in found if sentence in said] == keys
