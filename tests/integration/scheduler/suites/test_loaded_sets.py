"""Rows that the code of a task loads by itself, in real sandboxes: the scheduler opens their sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.code.errors import TaskCodeFailed, TaskCodeOff
from services.scheduler.suites.code.loaded_sets import MAX_SETS
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow
from services.scheduler.suites.rows.task_code import CodeFunction, TaskCode

WORDS: Sequence[SourceRow] = [{"word": f"word {number}"} for number in range(5)]
CUSTOM = "def custom(**given):\n"


@pytest.fixture(scope="module")
def runner() -> BubblewrapCode:
    return BubblewrapCode(BubblewrapEngine(find_bubblewrap()))


@dataclass
class Hub:
    """Data sets by their names, and what was asked of them."""

    sets: Mapping[str, Sequence[SourceRow]] = field(default_factory=lambda: {"own/words": WORDS})
    asked: list[RowsReference] = field(default_factory=list)

    def open(self, reference: RowsReference) -> RowSet:
        self.asked.append(reference)
        rows = self.sets[reference.hub_id]
        place = f"{reference.hub_id}/{reference.config}/{reference.split}"
        return RowSet(iter(rows), Provenance("hub", place, "5", is_stand_in="part" in reference.hub_id))


def reference(code: str, arguments: str = "", **functions: str) -> RowsReference:
    named = [CodeFunction(key, "own/utils.py", function) for key, function in functions.items()]
    files = {"own/utils.py": f"import datasets\n{dedent(code)}".encode()}
    return RowsReference("own", split="test", code=TaskCode("words", named, files, arguments))


def made(runner: BubblewrapCode, hub: Hub, rows: RowsReference) -> list[SourceRow]:
    return list(CodedRows(hub, runner).open(rows).rows)


def refusal(runner: BubblewrapCode, body: str) -> str:
    with pytest.raises(TaskCodeFailed) as raised:
        made(runner, Hub(), reference(CUSTOM + f"    {body}\n", custom_dataset="custom"))
    return str(raised.value)


def test_code_gets_the_rows_that_it_loads_and_chooses_of_them(runner: BubblewrapCode) -> None:
    code = """
        def custom(**given):
            rows = datasets.load_dataset("own/words", given["config"], split="train", token=None)
            return {"test": rows.filter(lambda row: row["word"] in given["kept"])}

        def text(row):
            return f"Say {row['word']}"
        """
    given = '{"config": "small", "kept": ["word 1", "word 3"]}'
    rows = reference(code, given, custom_dataset="custom", doc_to_text="text")
    hub = Hub()
    texts = [row["!function own/utils.py:text"] for row in made(runner, hub, rows)]
    assert texts == ["Say word 1", "Say word 3"]
    assert {(each.hub_id, each.config, each.split) for each in hub.asked} == {("own/words", "small", "train")}


def test_all_splits_are_loaded_by_name_and_processed_afterwards(runner: BubblewrapCode) -> None:
    code = """
        def custom(**given):
            splits = datasets.load_dataset("own/words", data_files={"test": "a.csv"}, revision="v1")
            assert list(splits["test"].features) == ["word"]
            return splits

        def process(docs):
            more = datasets.load_dataset("own/more", split="dev")
            return docs.select(range(2)).map(lambda row: {"more": more[0]["n"]})
        """
    hub = Hub({"own/words": WORDS, "own/more": [{"n": 7}]})
    rows = made(runner, hub, reference(code, custom_dataset="custom", process_docs="process"))
    assert rows == [{"word": "word 0", "more": 7}, {"word": "word 1", "more": 7}]
    assert {(each.data_files, each.revision) for each in hub.asked} == {(("a.csv",), "v1"), ((), None)}


def test_rows_of_nothing_need_no_data_set(runner: BubblewrapCode) -> None:
    code = CUSTOM + "    return {'test': [{'n': n} for n in range(given['count'])]}\n"
    hub = Hub()
    assert made(runner, hub, reference(code, '{"count": 3}', custom_dataset="custom")) == [
        {"n": 0},
        {"n": 1},
        {"n": 2},
    ]
    assert hub.asked == []


def test_the_origin_of_rows_is_that_of_the_sets_that_were_loaded(runner: BubblewrapCode) -> None:
    code = """
        def custom(**given):
            first = datasets.load_dataset("own/words", split="train")
            second = datasets.load_dataset("own/part", "b", split="dev")
            return {"test": datasets.concatenate_datasets([first, second])}
        """
    hub = Hub({"own/words": WORDS, "own/part": [{"word": "last"}]})
    found = CodedRows(hub, runner).open(reference(code, custom_dataset="custom"))
    assert found.provenance == Provenance("hub", "own/words//train, own/part/b/dev", "5 5", is_stand_in=True)
    assert [row["word"] for row in found.rows][-2:] == ["word 4", "last"]


def test_rows_of_a_split_with_code_that_loads_more_are_sent_again(runner: BubblewrapCode) -> None:
    code = """
        def process(docs):
            return [{**row, "of": len(datasets.load_dataset("own/more", split="dev"))} for row in docs]
        """
    hub = Hub({"own/words": WORDS, "own/more": [{"n": 7}, {"n": 8}]})
    named = reference(code, process_docs="process")
    rows = made(runner, hub, RowsReference("own", hub_id="own/words", split="test", code=named.code))
    assert rows == [{**row, "of": 2} for row in WORDS]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return datasets.load_dataset('json', data_files='/etc/passwd')", "'json', which is no data set"),
        ("return datasets.load_dataset('../own', split='a')", "'../own', which is no data set"),
        ("return {'test': datasets.load_dataset('own/words', split='test[:2]')}", "only whole splits"),
        ("return dict(datasets.load_dataset('own/words'))", "cannot list"),
        ("return {'dev': []}", "there is no split test"),
        ("return {'test': [5]}", "a row is no dict"),
        ("return given['absent']", "KeyError"),
        (
            "[datasets.load_dataset('own/words', str(n), split='a') for n in range(99)]",
            f"more than {MAX_SETS}",
        ),
        (
            "from secrets import token_hex; datasets.load_dataset('own/words', token_hex(4))['a']",
            "more than",
        ),
        ("return 5", "there is no split test"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_a_sentence(
    runner: BubblewrapCode, body: str, sentence: str
) -> None:
    said = refusal(runner, body)
    assert sentence in said
    assert said.startswith("The code of task words ")


def test_a_line_that_the_code_forges_is_no_data_set(runner: BubblewrapCode) -> None:
    code = """
        import os

        def custom(**given):
            for number in range(3, 10):
                try:
                    os.write(number, b'{"needs": {"path": "own/words"}}\\n')
                except OSError:
                    pass
        """
    hub = Hub()
    with pytest.raises(TaskCodeFailed, match="wrote a line that is no row"):
        made(runner, hub, reference(code, custom_dataset="custom"))
    assert hub.asked == []


def test_no_rows_are_loaded_for_a_single_row(runner: BubblewrapCode) -> None:
    code = """
        def text(row):
            return datasets.load_dataset("own/words", split="test")[0]["word"]
        """
    named = reference(code, doc_to_text="text")
    with pytest.raises(TaskCodeFailed, match="only custom_dataset and process_docs may load rows"):
        made(runner, Hub(), RowsReference("own", hub_id="own/words", split="test", code=named.code))


def test_no_code_is_executed_where_its_operator_allows_none() -> None:
    with pytest.raises(TaskCodeOff):
        CodedRows(Hub(), None).open(reference(CUSTOM + "    return {}\n", custom_dataset="custom"))
