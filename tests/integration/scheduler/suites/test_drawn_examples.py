"""Examples that a class of a task draws, in real sandboxes: what it draws, and what it cannot do."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode, CodeLimits
from services.common.sandboxes.task_code.inside.program import BATCH_ROWS
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.code.errors import TaskCodeFailed, TaskCodeOff
from services.scheduler.suites.errors import InvalidRow
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.suite import TaskDefinition
from tests.fakes.suites.sampled_tasks import SAMPLER, question_rows, sampled_task
from tests.fakes.thorough_cases import first_cases

MIB = 1024**2
LIMITS = CodeLimits(seconds=8.0, memory_bytes=192 * MIB, output_bytes=8 * MIB, line_bytes=4 * MIB)
INHERITED = "class Own(ContextSampler):\n    pass\n"
DRAWN = "class Own(ContextSampler):\n    def sample(self, n, eval_doc=None, **given):\n        {}\n"


@pytest.fixture(scope="module")
def runner() -> BubblewrapCode:
    return BubblewrapCode(BubblewrapEngine(find_bubblewrap()), limits=LIMITS)


def prompts(
    runner: BubblewrapCode | None, task: TaskDefinition, shots: int | None = None, limit: int | None = None
) -> list[str]:
    return [
        sample.prompt.as_text
        for sample in open_task(task, CodedRows(FileRows(), runner), shots, limit).samples
    ]


def refusal(runner: BubblewrapCode, folder: Path, code: str) -> str:
    with pytest.raises(TaskCodeFailed) as raised:
        prompts(runner, sampled_task(folder, code))
    return str(raised.value).removeprefix("The code of task sampled ")


@pytest.mark.parametrize("pool", ["train", "test"])
@pytest.mark.parametrize(("base", "own"), [("ContextSampler", "default"), ("FirstNSampler", "first_n")])
def test_a_sampler_that_changes_nothing_draws_as_the_one_that_it_is_made_of(
    runner: BubblewrapCode, tmp_path: Path, base: str, own: str, pool: str
) -> None:
    """Documents are dropped from their examples where the pool is theirs."""
    split = f"fewshot_split: {pool}\n"
    coded = prompts(runner, sampled_task(tmp_path, f"class Own({base}):\n    pass\n", SAMPLER + split))
    plain = sampled_task(tmp_path, "", f"fewshot_config: {{sampler: {own}}}\n{split}")
    assert coded == prompts(None, plain)
    assert len(set(coded)) == 30


def test_a_module_of_samplers_may_be_imported_from_its_package(
    runner: BubblewrapCode, tmp_path: Path
) -> None:
    imported = "from lm_eval.api import registry, samplers\nclass Own(samplers.ContextSampler):\n    pass\n"
    assert prompts(runner, sampled_task(tmp_path, imported)) == prompts(
        runner, sampled_task(tmp_path, INHERITED)
    )


def test_draws_go_on_over_all_rows_and_no_limit_changes_them(runner: BubblewrapCode, tmp_path: Path) -> None:
    """As in lm-evaluation-harness there is one sampler for the task: rows are drawn in their order."""
    counting = DRAWN.format(
        "self.count = getattr(self, 'count', 0) + 1\n"
        "        return [{'question': str(self.count), 'answer': 'x'}]"
    )
    rows = question_rows(BATCH_ROWS + 3)
    counted = prompts(runner, sampled_task(tmp_path, counting, test=rows))
    assert [prompt.split(" ")[0] for prompt in counted] == [str(number + 1) for number in range(len(rows))]
    assert prompts(runner, sampled_task(tmp_path, counting, test=rows), limit=5) == counted[:5]


def test_rows_that_a_sampler_makes_are_worded_as_examples_are(runner: BubblewrapCode, tmp_path: Path) -> None:
    code = (
        DRAWN.format("return [self.df[1], {**self.df[1], 'answer': 'made'}]")
        + "def shown(doc):\n    return 'Shown ' + doc['question']\n"
        + "def text(doc):\n    return doc['question']\n"
    )
    more = (
        "doc_to_text: !function utils.text\nfewshot_split: train\n"
        "fewshot_config: {sampler: !function utils.Own, doc_to_text: !function utils.shown}\n"
    )
    first, *_ = open_task(sampled_task(tmp_path, code, more), CodedRows(FileRows(), runner)).samples
    shown = "Shown Frage 1 — ü?"
    assert first.prompt.as_text == f"{shown} 7\n\n{shown} made\n\nFrage 0 — ü?"
    assert first.doc_json == '{"question":"Frage 0 — ü?","answer":"0","kind":0}'


def test_without_examples_no_sampler_is_asked(runner: BubblewrapCode, tmp_path: Path) -> None:
    task = sampled_task(tmp_path, DRAWN.format("raise ValueError"))
    assert prompts(runner, task, shots=0, limit=1) == ["Frage 0 — ü?"]


_AT_ROW_0 = "failed in sampler at row 0 (utils.py, line 4): "
_MADE = "class Own(ContextSampler):\n    pass\nOwn = {}\n"
_FAILURES = {
    "no number of its own": (
        DRAWN.format("import os; return sorted(self.df, key=lambda row: os.urandom(4))[:n]"),
        "draws other examples for row 0 with a second sampler of the same seed: draw with its own rnd alone.",
    ),
    "a file that it keeps": (
        DRAWN.format(
            "import time; open('/tmp/kept', 'a').write(str(time.time_ns()))\n"
            "        return [{**self.df[0], 'answer': open('/tmp/kept').read()}]"
        ),
        "draws other examples for row 0 with a second sampler of the same seed: draw with its own rnd alone.",
    ),
    "an error": (DRAWN.format("return [self.df['x']]"), f"{_AT_ROW_0}TypeError: list indices must be"),
    "a pool that is too small": (
        "class Own(ContextSampler):\n    def sample(self, n, **given):\n        return super().sample(90)\n",
        "failed in sampler at row 0 (utils.py, line 4): ValueError: Sample larger than population",
    ),
    "no examples": (
        DRAWN.format("return 3"),
        "failed in sampler at row 0: TypeError: 'int' object is not iterable.",
    ),
    "no rows": (
        DRAWN.format("return ['x']"),
        "failed in sampler at row 0: TypeError: an example is a str, not a dict.",
    ),
    "no class": (
        _MADE.format("print"),
        "failed in sampler: TypeError: it is no subclass of lm_eval.api.samplers.ContextSampler.",
    ),
    "another class": (
        "class Own:\n    def __init__(self, *_, **__): pass\n",
        "failed in sampler: TypeError: it is no subclass of lm_eval.api.samplers.ContextSampler.",
    ),
    "an absent class": ("", "failed in sampler: AttributeError: "),
    "an absent package": (
        "import nowhere\n" + DRAWN.format("return nowhere.x(self.df)"),
        "needs the package nowhere for sampler; its operator may put it into the folder",
    ),
    "the network": (
        DRAWN.format("import socket; socket.create_connection(('93.184.216.34', 80), 2)"),
        f"{_AT_ROW_0}OSError: [Errno 101] Network is unreachable.",
    ),
    "an endless loop": (DRAWN.format("while True: pass"), "took more than 8 s."),
    "memory": (DRAWN.format("return [{}] * 10 ** 9"), "used more than 192 MiB of memory."),
    "output": (DRAWN.format("return [{'question': 'x' * 2 ** 20, 'answer': ''}]"), "wrote more than 8 MiB."),
    "a line that it writes": (
        DRAWN.format(
            "import os\n        for number in range(3, 20):\n            try: os.write(number, "
            "b'{\"made\": {\"sampler\": [99]}}\\n')\n            except OSError: pass\n        return []"
        ),
        "wrote a line that is no row.",
    ),
    "an end of the process": (DRAWN.format("import os; os._exit(0)"), "ended with exit code 0 before its "),
}  # fmt: skip


@first_cases(4, "attempt", list(_FAILURES))
def test_what_a_sampler_cannot_do_is_said_in_one_sentence(
    runner: BubblewrapCode, tmp_path: Path, attempt: str
) -> None:
    code, sentence = _FAILURES[attempt]
    assert refusal(runner, tmp_path, code).startswith(sentence)


def test_examples_are_limited_as_the_prompt_is(runner: BubblewrapCode, tmp_path: Path) -> None:
    rows = [{"question": "x" * 10**6, "answer": ""}]
    task = sampled_task(tmp_path, DRAWN.format("return self.df * 10"), test=question_rows(2), train=rows)
    with pytest.raises(InvalidRow, match="its examples have more than the"):
        prompts(runner, task)


def test_a_row_of_a_sampler_that_cannot_be_worded_is_named(runner: BubblewrapCode, tmp_path: Path) -> None:
    task = sampled_task(tmp_path, DRAWN.format("return [{'question': None, 'answer': ''}]"))
    with pytest.raises(
        InvalidRow, match=r"row 0 .*an example that its sampler made: the field 'question' is"
    ):
        prompts(runner, task)


def test_a_sampler_is_refused_where_the_operator_allows_no_code(tmp_path: Path) -> None:
    with pytest.raises(TaskCodeOff) as raised:
        prompts(None, sampled_task(tmp_path, INHERITED))
    assert "Python code (sampler)" in str(raised.value)


def test_samplers_of_coded_rows_do_not_wait_for_each_other(runner: BubblewrapCode, tmp_path: Path) -> None:
    """More tasks at once than places: each needs a place for its rows while its sampler has one."""
    code = f"{INHERITED}def text(doc):\n    return doc['question']\n"
    more = f"{SAMPLER}fewshot_split: train\ndoc_to_text: !function utils.text\n"
    task = sampled_task(tmp_path, code, more)
    with ThreadPoolExecutor(6) as threads:
        opened = [threads.submit(prompts, runner, task) for _ in range(6)]
        found = [each.result(timeout=120) for each in opened]
    assert all(each == found[0] for each in found)
