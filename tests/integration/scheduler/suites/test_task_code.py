"""Python code of tasks, executed in real sandboxes: what it makes of rows, and what it cannot do."""

import random
from collections.abc import Iterator
from dataclasses import replace
from textwrap import dedent

import pytest

from proctor.values.scoring import OutputType, TaskScoring
from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode, CodeLimits
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.code.errors import TaskCodeFailed, TaskCodeOff
from services.scheduler.suites.errors import InvalidRow
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rows.row_source import RowsReference, SourceRow
from services.scheduler.suites.rows.task_code import CodeFunction, TaskCode
from services.scheduler.suites.suite import FewshotRule, FewshotSampler, TaskDefinition, TaskTemplates
from services.scheduler.suites.templates.prompt_template import compile_template
from tests.fakes.suites.suite_folder import RowsInMemory
from tests.fakes.thorough_cases import every_third, first_cases

MIB = 1024**2
LIMITS = CodeLimits(seconds=8.0, memory_bytes=192 * MIB, output_bytes=8 * MIB, line_bytes=MIB)
ROWS: list[SourceRow] = [{"word": f"word {number}", "label": number % 2} for number in range(40)]


@pytest.fixture(scope="module")
def runner() -> BubblewrapCode:
    return BubblewrapCode(BubblewrapEngine(find_bubblewrap()), limits=LIMITS)


def made(
    runner: BubblewrapCode, code: str, rows: list[SourceRow] | None = None, **functions: str
) -> list[SourceRow]:
    """Rows that the functions make, by key of the task; a column of code is named by its function."""
    given = RowsInMemory({"test": iter(ROWS if rows is None else rows)})
    return [
        {name.rpartition(":")[2]: value for name, value in row.items()}
        for row in CodedRows(given, runner).open(reference(code, **functions)).rows
    ]


def reference(code: str, **functions: str) -> RowsReference:
    named = [CodeFunction(key, "own/utils.py", function) for key, function in functions.items()]
    files = {"own/utils.py": dedent(code).encode(), "words/more.py": b"MORE = 'more'\n"}
    return RowsReference("own", hub_id="x", split="test", code=TaskCode("words", named, files))


def refusal(runner: BubblewrapCode, code: str, **functions: str) -> str:
    with pytest.raises(TaskCodeFailed) as raised:
        made(runner, code, None, **functions)
    return str(raised.value).removeprefix("The code of task words ")


def test_code_makes_rows_and_what_is_asked_of_them(runner: BubblewrapCode) -> None:
    code = """
        import datasets
        from lm_eval.tasks.words.more import MORE

        def process(dataset: datasets.Dataset) -> datasets.Dataset:
            kept = dataset.filter(lambda doc: doc["label"] == 1).select(range(3))
            return kept.map(lambda doc: {"choices": [doc["word"], MORE]})

        def text(doc):
            return f"Which? {doc['word']}"

        def choices(doc):
            return tuple(doc["choices"])
        """
    rows = made(runner, code, process_docs="process", doc_to_text="text", doc_to_choice="choices")
    assert rows == [
        {
            "word": f"word {number}",
            "label": 1,
            "choices": [f"word {number}", "more"],
            "text": f"Which? word {number}",
        }
        | {"choices": [f"word {number}", "more"]}
        for number in (1, 3, 5)
    ]


def test_rows_are_asked_as_they_are_where_no_code_changes_them(runner: BubblewrapCode) -> None:
    rows = made(runner, "def text(doc):\n    doc['word'] = ''\n    return '?'\n", doc_to_text="text")
    assert rows == [{**row, "text": "?"} for row in ROWS]


def test_a_sample_has_what_the_code_made_and_stores_the_row_without_it(runner: BubblewrapCode) -> None:
    code = "def text(doc):\n    return 'Say ' + doc['word']\n"
    rows = reference(code, doc_to_text="text")
    assert rows.code is not None
    templates = TaskTemplates(compile_template(rows.code.functions[0].column), compile_template("{{word}}"))
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, ())
    task = TaskDefinition("words", "1", rows, rows, templates, scoring)
    given = RowsInMemory({"test": ROWS})
    samples = list(open_task(task, CodedRows(given, runner), num_fewshot=1, limit=2).samples)
    prompts = [str(sample.prompt.text).split("\n\n") for sample in samples]
    assert [question for _, question in prompts] == ["Say word 0", "Say word 1"]
    assert all(example.startswith("Say word ") for example, _ in prompts)
    assert samples[0].doc_json == '{"word":"word 0","label":0}'


@first_cases(
    1,
    "body",
    ["return docs", "return docs.with_format('python')", "yield from docs", "return map(dict, docs)"],
)
def test_rows_that_the_code_leaves_as_they_are_stay(runner: BubblewrapCode, body: str) -> None:
    assert made(runner, f"def process(docs):\n    {body}\n", process_docs="process") == ROWS


def test_figures_do_not_depend_on_the_order_of_calls(runner: BubblewrapCode) -> None:
    """The code draws at random and keeps what it can; each row gets the same whatever comes before it."""
    code = """
        import random

        def text(doc):
            return doc["word"] + str(random.random() < 2)
        """
    shuffled = list(ROWS)
    random.Random(7).shuffle(shuffled)
    first = {row["word"]: row["text"] for row in made(runner, code, doc_to_text="text")}
    again = {row["word"]: row["text"] for row in made(runner, code, shuffled, doc_to_text="text")}
    assert first == again


@first_cases(
    1,
    "code",
    [
        "kept = []\ndef text(doc):\n    kept.append(doc)\n    return str(len(kept))\n",
        "seen = {}\ndef text(doc):\n    return seen.setdefault('first', doc['word'])\n",
        "def text(doc, kept=[0]):\n    kept[0] += 1\n    return doc['word'] * kept[0]\n",
    ],
)
def test_a_function_that_keeps_state_is_refused(runner: BubblewrapCode, code: str) -> None:
    assert refusal(runner, code, doc_to_text="text").startswith(
        "makes another doc_to_text of row 39 where the rows are asked in another order: a function may keep"
    )


_AT_ROW_0 = "failed in doc_to_text at row 0 (own/utils.py, line 2): "
_OF_A_CRASH = [
    ("def text(doc):\n    return doc['gone']\n", f"{_AT_ROW_0}KeyError: 'gone'."),
    ("def other(doc):\n    return ''\n", "failed in doc_to_text: AttributeError: "),
    ("def text(doc:\n", "failed in doc_to_text: SyntaxError: "),
    ("def text(doc):\n    return 3.5\n", "gives a text in doc_to_text, but row 0 has float."),
    ("def text(doc):\n    return {1, 2}\n", "failed in doc_to_text at row 0: TypeError: set has no form"),
    # No table takes a NUL character or a lone surrogate.
    ("def text(doc):\n    raise ValueError('a\\0b\\udc80')\n", f"{_AT_ROW_0}ValueError: a\ufffdb\ufffd."),
    ("import os\nos.write(2, b'a\\0b')\nos._exit(1)", "ended with exit code 1 before its last line: a\ufffd"),
    ("import nowhere\ndef text(doc):\n    return nowhere.x(doc)\n", "needs the package nowhere for doc_to"),
    ("import nowhere\nnowhere.set(1)\ndef text(doc):\n    return ''\n", "needs the package nowhere for "),
]  # fmt: skip


@first_cases(4, ("code", "sentence"), _OF_A_CRASH)
def test_a_failure_names_function_row_and_line(runner: BubblewrapCode, code: str, sentence: str) -> None:
    assert refusal(runner, code, doc_to_text="text").startswith(sentence)


def test_an_absent_package_is_missed_where_it_is_used_only(runner: BubblewrapCode) -> None:
    code = """
        import numpy as np
        from lm_eval.utils import weighted_f1_score
        from sklearn.metrics import f1_score
        try:
            import absent
        except ImportError:
            absent = None

        def score(answers: np.ndarray | None) -> "np.ndarray":
            return f1_score(answers)

        def text(doc):
            return str(absent)
        """
    assert made(runner, code, doc_to_text="text")[0]["text"] == "None"


_READ_ONLY = f"{_AT_ROW_0}OSError: [Errno 30] Read-only file system: "
_IN_EACH_FILE = """for number in range(3, 20):
        try:
            while True: os.write(number, b'x' * 65536)
        except OSError: pass"""
# What hostile code tries, in the body of a function, and what a user reads of it.
_HOSTILE = {
    "network": (
        "import socket; socket.create_connection(('93.184.216.34', 80), 2)",
        f"{_AT_ROW_0}OSError: [Errno 101] Network is unreachable.",
    ),
    "name on the network": (
        "import socket; socket.gethostbyname('example.org')",
        f"{_AT_ROW_0}socket.gaierror: ",
    ),
    "files of the machine": ("return open('/etc/shadow').read()", f"{_AT_ROW_0}FileNotFoundError: "),
    "its own code": ("open(__file__, 'a').write('x')", _AT_ROW_0),
    "a file for other rows": (
        "print('x', file=open('/tmp/kept', 'a')); return open('/tmp/kept').read()",
        "makes another doc_to_text of row 39 where the rows are asked in another order",
    ),
    "an answer kept in a closed folder": (
        (
            "import os; path = f'/tmp/{doc[\"word\"]}'\n"
            "    if not os.path.exists(path): os.mkdir(path); "
            "open(f'{path}/kept', 'w').write(str(len(os.listdir('/tmp')))); os.chmod(path, 0o500)\n"
            "    return open(f'{path}/kept').read()"
        ),
        "makes another doc_to_text of row 39 where the rows are asked in another order",
    ),
    "a folder for good": ("open('/home/kept', 'w').write('x')", _READ_ONLY),
    "a full disk": (
        (
            "import os; os.write(os.open('/tmp/x', os.O_CREAT | os.O_WRONLY), b'x' * 10**8)"
            "; open('/tmp/y', 'w').write('x' * 10**5)"
        ),
        f"{_AT_ROW_0}OSError: [Errno 28] No space left on device",
    ),
    "a shared memory": (
        "from multiprocessing import shared_memory as m; m.SharedMemory('kept', True, 10)",
        _READ_ONLY,
    ),
    "a fork bomb": (
        "import os\n    while True:\n        os.fork()",
        "failed in doc_to_text at row 0 (own/utils.py, line 4): BlockingIOError: ",
    ),
    "an endless loop": ("while True: pass", "took more than 8 s."),
    "a sleep": ("import time; time.sleep(3600)", "took more than 8 s."),
    "memory": (
        "kept = []\n    while True: kept.append(bytearray(10 ** 7))",
        "used more than 192 MiB of memory.",
    ),
    "10 GB of output": ("import os\n    while True: os.write(2, b'x' * 65536)", "wrote more than 8 MiB."),
    "a row of 10 GB": (f"import os\n    {_IN_EACH_FILE}", "wrote a line of more than 1 MiB."),
    "an end of the process": ("import os; os._exit(0)", "ended before its last row."),
    "a kill": ("import os; os.kill(os.getpid(), 9)", "ended with exit code 137 before its last line."),
    # Once more where it has found nobody but itself.
    "a kill of all": ("import os; os.kill(-1, 9); os._exit(0)", "ended "),
}


@pytest.mark.parametrize("attempt", every_third(_HOSTILE))
def test_hostile_code_is_held(runner: BubblewrapCode, attempt: str) -> None:
    body, sentence = _HOSTILE[attempt]
    said = refusal(runner, f"def text(doc):\n    {body}\n    return ''\n", doc_to_text="text")
    assert said.startswith(sentence)


# Lines that hostile code writes itself, in the place of the program's.
_FORGED = {
    '{"row": {"word": "x"}, "made": {"doc_to_text": "forged"}}': "wrote more rows than it got.",
    '{"made": {"doc_to_target": 1}}': "wrote a line that is no row.",
    '{"end": 40}': "ended before its last row.",
    "[1]": "wrote a line that is no row.",
    "[" * 2000: "wrote a line that is no JSON.",
    '{"again": "x", "made": 1}': "wrote a line that is no row.",
}


@first_cases(2, "line", _FORGED)
def test_lines_that_the_code_writes_are_no_rows_of_others(runner: BubblewrapCode, line: str) -> None:
    forged = line.encode() + b"\n"
    code = f"""
        import os

        def text(doc):
            for number in range(3, 20):
                try:
                    os.write(number, {forged!r})
                except OSError:
                    pass
            return ""
        """
    assert refusal(runner, code, doc_to_text="text").startswith(_FORGED[line])


def test_code_makes_the_examples_and_words_them(runner: BubblewrapCode) -> None:
    """Its rows are those of the document but for what the code makes: it is left out of its examples."""
    code = """
        def samples():
            return [{"word": f"word {number}", "label": number % 2} for number in range(3)]

        def shown(doc):
            return f"Shown {doc['word']}"

        def text(doc):
            return f"Say {doc['word']}"
        """
    rows = reference(code, doc_to_text="text")
    pool = replace(reference(code, samples="samples", doc_to_text="shown"), hub_id="")
    columns = [f"!function own/utils.py:{name}" for name in ("text", "shown")]
    text, shown = [TaskTemplates(compile_template(name), compile_template("word")) for name in columns]
    rule = FewshotRule(FewshotSampler.FIRST_N, num_fewshot=1)
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, ())
    task = TaskDefinition("words", "1", rows, pool, text, scoring, rule, shown)
    opened = open_task(task, CodedRows(RowsInMemory({"test": ROWS[:2]}), runner))
    assert [sample.prompt.as_text for sample in opened.samples] == [
        "Shown word 1 word 1\n\nSay word 0",
        "Shown word 0 word 0\n\nSay word 1",
    ]
    assert opened.fewshot_provenance is None


def test_tasks_do_not_see_each_other(runner: BubblewrapCode) -> None:
    """Two are planned at once, and what one keeps is not there for the other."""
    code = "import os\nkept = []\ndef text(doc):\n    return str(sorted(os.listdir('/task/files')))\n"
    given = RowsInMemory({"test": ROWS})
    first = iter(CodedRows(given, runner).open(reference(code, doc_to_text="text")).rows)
    second = iter(CodedRows(given, runner).open(reference(code, doc_to_text="text")).rows)
    pairs = list(zip(first, second, strict=True))
    assert all(one == other for one, other in pairs)
    listed = {value for one, _ in pairs for name, value in one.items() if name.endswith(":text")}
    assert listed == {"['own', 'words']"}


def test_a_row_that_has_no_form_in_json_is_named(runner: BubblewrapCode) -> None:
    rows = reference("def text(doc):\n    return ''\n", doc_to_text="text")
    templates = TaskTemplates(compile_template("x y"), compile_template("x"))
    task = TaskDefinition("words", "1", rows, None, templates, TaskScoring(OutputType.GENERATE_UNTIL, ()))
    given = RowsInMemory({"test": [{"word": "a"}, {"word": b"\0"}]})
    with pytest.raises(InvalidRow, match=r"row 1 \(from 0\): the code of a task cannot get it as JSON"):
        list(open_task(task, CodedRows(given, runner)).samples)


def test_code_is_refused_where_the_operator_allows_none() -> None:
    rows = CodedRows(RowsInMemory({"test": ROWS}), None)
    with pytest.raises(TaskCodeOff) as raised:
        rows.open(reference("", process_docs="process", doc_to_text="text"))
    assert str(raised.value) == (
        "Task words has Python code (process_docs, doc_to_text): set PROCTOR_TASK_CODE=sandbox "
        "to execute it here."
    )


def test_rows_that_are_not_read_to_their_end_close_the_sandbox(runner: BubblewrapCode) -> None:
    """More of them than places, so that one that stayed would stop the next."""
    endless: Iterator[SourceRow] = ({"word": str(number)} for number in range(10**9))
    for _ in range(6):
        given = RowsInMemory({"test": endless})
        opened = CodedRows(given, runner).open(reference("def text(doc): return ''\n", doc_to_text="text"))
        assert len(next(iter(opened.rows))) == 2  # the word and the text
