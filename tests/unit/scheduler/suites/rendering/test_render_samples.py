"""Rows become samples: prompts, continuations, targets and digests; bad rows are named."""

import hashlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from proctor.values.sample import Target
from services.scheduler.suites.errors import FewshotPoolTooSmall, InvalidRow, NoFewshotPool, NoRows
from services.scheduler.suites.rendering.render_task import (
    RenderedTask,
    open_task,
    render_task,
)
from services.scheduler.suites.rendering.sample import MAX_SAMPLE_BYTES, RenderedRow, encode_row
from services.scheduler.suites.rows.errors import UnreadableRow
from services.scheduler.suites.rows.row_source import Provenance, SourceRow
from tests.fakes.suites.suite_folder import RowsInMemory, load_one

ROWS = [{"thing": "grass", "label": 1}, {"thing": "blood", "label": 0}, {"thing": "moss", "label": 1}]
GENERATION = {
    "output_type": "generate_until",
    "doc_to_choice": None,
    "metric_list": [{"metric": "exact_match"}],
}


def test_a_row_becomes_a_prompt_with_continuations_and_a_target(tmp_path: Path) -> None:
    first, second, _ = render_task(load_one(tmp_path), ROWS)
    assert (first.prompt.as_text, first.choices, first.target) == (
        "grass is",
        (" red", " green"),
        Target(choice=1),
    )
    assert (second.position, second.doc_id, second.target.choice) == (1, 1, 0)


@pytest.mark.parametrize(
    ("begin", "prompt"),
    [
        ("The answer is", "blood is The answer is red\n\ngrass is The answer is"),
        ("\nIt is '", "blood is\nIt is ' red\n\ngrass is\nIt is '"),
        ("I say: ", "blood is I say: red\n\ngrass is I say: "),
        ("{{thing}}:", "blood is blood: red\n\ngrass is grass:"),
    ],
)
def test_a_begin_of_the_answer_ends_the_prompt_and_stands_in_examples(
    tmp_path: Path, begin: str, prompt: str
) -> None:
    task = load_one(tmp_path, gen_prefix=begin, fewshot_config={"sampler": "first_n"})
    sample = next(render_task(task, ROWS[:1], ROWS[1:2], 1))
    assert (sample.prompt.as_text, sample.choices) == (prompt, (" red", " green"))


def test_a_limit_takes_the_first_rows_and_reads_no_more(tmp_path: Path) -> None:
    endless = ({"thing": str(number), "label": 0} for number in count())
    samples = list(render_task(load_one(tmp_path), endless, limit=2))
    assert [sample.prompt.as_text for sample in samples] == ["0 is", "1 is"]
    assert next(endless)["thing"] == "2"


def test_text_with_a_nul_names_its_row(tmp_path: Path) -> None:
    rows = [ROWS[0], {"thing": "a\0b", "label": 1}]
    with pytest.raises(InvalidRow, match=r"row 1 \(from 0\): its text holds a NUL"):
        list(render_task(load_one(tmp_path), rows))


def test_a_limited_and_a_full_rendering_share_digests(tmp_path: Path) -> None:
    task = load_one(tmp_path)
    limited = [sample.digest for sample in render_task(task, ROWS, limit=2)]
    assert limited == [sample.digest for sample in render_task(task, ROWS)][:2]


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "2"},
        {"doc_to_text": "{{thing}} looks"},
        {"doc_to_choice": ["red", "blue"]},
        {"target_delimiter": ""},
        {"description": "Name the colour. "},
    ],
)
def test_the_digest_changes_with_what_is_asked_or_expected(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    before = next(render_task(load_one(tmp_path), ROWS)).digest
    assert next(render_task(load_one(tmp_path, **changes), ROWS)).digest != before


def test_the_digest_is_taken_over_a_documented_encoding() -> None:
    row = RenderedRow("é?", (" a", " b"), Target(choice=1))
    encoded = b"16:proctor-sample-14:task1:13:\xc3\xa9?1:22: a2: b1:11:0"
    assert encode_row("task", "1", row) == encoded


def test_the_digest_is_stable_between_versions_of_the_program(tmp_path: Path) -> None:
    sample = next(render_task(load_one(tmp_path), ROWS))
    encoded = b"16:proctor-sample-17:colours1:18:grass is1:24: red6: green1:11:0"
    assert sample.digest == hashlib.sha256(encoded).digest()
    assert sample.size_bytes == len(encoded)


@pytest.mark.parametrize(
    ("row", "field", "problem"),
    [
        ({"label": 1}, "thing", "the field 'thing' is missing"),
        ({"thing": "sky"}, "label", "the field 'label' is missing"),
        ({"thing": "sky", "label": None}, "label", "the field 'label' is null"),
        ({"thing": "sky", "label": 2}, "", "the label 2 is none of the 2 choices"),
        ({"thing": "sky", "label": -1}, "", "the label -1 is none of the 2 choices"),
        ({"thing": "sky", "label": "blue"}, "", "the label 'blue' is none of the 2 choices"),
        ({"thing": "sky", "label": [0, 2]}, "", "the label 2 is none of the 2 choices"),
        ({"thing": "sky", "label": []}, "", "doc_to_target gives an empty list"),
        ({"thing": "sky", "label": 1.0}, "", "the label 1.0 is none of the 2 choices"),
        (
            {"thing": "sky", "label": "1"},
            "",
            "the label '1' is none of the 2 choices (it is text; as a template, {{…}}, it would be an index)",
        ),
        ({"thing": "\ud800", "label": 0}, "", "its text is not valid Unicode (a lone surrogate)"),
    ],
)
def test_an_unfit_row_is_reported_by_task_row_and_field(
    tmp_path: Path, row: dict[str, object], field: str, problem: str
) -> None:
    with pytest.raises(InvalidRow) as raised:
        list(render_task(load_one(tmp_path), [*ROWS, row]))
    assert str(raised.value) == f"Task 'colours', row 3 (from 0): {problem}."
    assert [raised.value.facts[name] for name in ("task", "doc_id", "field")] == ["colours", 3, field]


def test_a_sample_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRow, match="more than the 4194304 allowed"):
        list(render_task(load_one(tmp_path), [{"thing": "x" * MAX_SAMPLE_BYTES, "label": 0}]))


def test_no_rows_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(NoRows) as refused:
        list(render_task(load_one(tmp_path), []))
    assert refused.value.facts == {"task": "colours"}


def test_a_row_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    def rows() -> Iterator[SourceRow]:
        yield ROWS[0]
        raise UnreadableRow(2, "not valid JSON")

    with pytest.raises(InvalidRow) as refused:
        list(render_task(load_one(tmp_path), rows()))
    assert refused.value.facts == {"task": "colours", "doc_id": 1, "problem": "not valid JSON", "field": ""}


@pytest.mark.parametrize(
    ("target", "row", "choice"),
    [
        ("label", {"label": "green"}, 1),
        ("label", {"label": True}, 1),
        ("{{ 1 - label }}", {"label": 0}, 1),
        ("{{ colour }}", {"colour": "green"}, 1),
        ("{{ label }}", {"label": "1"}, 1),
        ("labels", {"labels": [1]}, 1),
        ("{{ [label] }}", {"label": 1}, 1),
        (1, {}, 1),
    ],
)
def test_a_right_choice_is_an_index_or_a_text(
    tmp_path: Path, target: object, row: dict[str, object], choice: int
) -> None:
    task = load_one(tmp_path, doc_to_target=target)
    assert next(render_task(task, [{"thing": "grass", **row}])).target == Target(choice=choice)


@pytest.mark.parametrize(
    "choices",
    ["options", "{{ options }}", "['{{options[0]}}', '{{options[1]}}']", "{{ options | tojson }}"],
)
def test_choices_come_from_a_column_or_a_template(tmp_path: Path, choices: str) -> None:
    task = load_one(tmp_path, doc_to_choice=choices)
    sample = next(render_task(task, [{"thing": "sky", "options": ["blue", "grey"], "label": 0}]))
    assert sample.choices == (" blue", " grey")


@pytest.mark.parametrize(
    ("target", "right"),
    [
        ("labels", (0, 2)),
        ("{{ labels }}", (0, 2)),
        ("{{ ['c', 'a'] }}", (0, 2)),
        ("[{% for label in labels %}{{ label }},{% endfor %}]", (0, 2)),
        ([2, 0], (0, 2)),
    ],
)
def test_several_choices_may_be_right(tmp_path: Path, target: object, right: tuple[int, ...]) -> None:
    task = load_one(tmp_path, doc_to_target=target, doc_to_choice=["a", "b", "c"])
    sample = next(render_task(task, [{"thing": "sky", "labels": [2, 0, 2]}]))
    assert sample.target == Target(right_choices=right)


def test_an_example_shows_the_first_of_several_right_choices(tmp_path: Path) -> None:
    task = load_one(
        tmp_path, doc_to_target="labels", doc_to_choice=["a", "b", "c"], fewshot_config={"sampler": "first_n"}
    )
    pool = [{"thing": "moss", "labels": [2, 0]}]
    assert (
        next(render_task(task, [{"thing": "sky", "labels": [1]}], pool, 1)).prompt.as_text
        == "moss is c\n\nsky is"
    )


def test_texts_stand_beside_a_choice_for_metrics_that_compare_texts(tmp_path: Path) -> None:
    task = load_one(
        tmp_path,
        doc_to_answers="{{ names }}",
        doc_to_choice_text="entities",
        metric_list=[{"metric": "squad_f1"}],
    )
    row = {"thing": "sky", "label": 1, "names": ["Blue", "Azure"], "entities": ["R", "G"]}
    first = next(render_task(task, [row]))
    assert first.target == Target(choice=1, texts=("Blue", "Azure"), choice_texts=("R", "G"))
    others = [{**row, "names": ["Blue"]}, {**row, "entities": ["R", "B"]}]
    assert len({first.digest, *(sample.digest for sample in render_task(task, others))}) == 3


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"entities": ["R"]}, "doc_to_choice_text gives 1 texts for 2 choices"),
        ({"names": []}, "doc_to_answers gives no list of texts"),
        ({"names": "Blue"}, "doc_to_answers gives no list of texts"),
        ({"names": ["Blue", None]}, "doc_to_answers gives a list with a null"),
    ],
)
def test_texts_beside_a_choice_that_do_not_fit_are_refused(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    task = load_one(
        tmp_path, doc_to_answers="names", doc_to_choice_text="entities", metric_list=[{"metric": "squad_f1"}]
    )
    row = {"thing": "sky", "label": 1, "names": ["Blue", "Azure"], "entities": ["R", "G"]}
    with pytest.raises(InvalidRow, match=problem):
        list(render_task(task, [{**row, **changes}]))


def test_right_and_wrong_texts_are_distinguished(tmp_path: Path) -> None:
    changes = {**GENERATION, "metric_list": [{"metric": "bleu_max"}]}
    task = load_one(tmp_path, **changes, doc_to_target="right", doc_to_wrong_target="{{ wrong | list }}")
    row = {"thing": "2 + 2", "right": ["4", "four"], "wrong": ["5"]}
    sample = next(render_task(task, [row]))
    assert sample.target == Target(texts=("4", "four"), wrong_texts=("5",))
    swapped = next(render_task(task, [{**row, "right": ["4"], "wrong": ["four", "5"]}]))
    assert swapped.digest != sample.digest


@pytest.mark.parametrize("options", [[], "blue", ["", "grey"], ["blue", None], None])
def test_choices_that_are_none_are_refused(tmp_path: Path, options: object) -> None:
    task = load_one(tmp_path, doc_to_choice="options")
    with pytest.raises(InvalidRow):
        list(render_task(task, [{"thing": "sky", "options": options, "label": 0}]))


@pytest.mark.parametrize(
    ("target", "texts"),
    [(4, ("4",)), ("four", ("four",)), (["4", "four"], ("4", "four")), ("['4']", ("['4']",))],
)
def test_accepted_texts_come_from_a_column(tmp_path: Path, target: object, texts: tuple[str, ...]) -> None:
    task = load_one(tmp_path, **GENERATION, doc_to_target="answer")
    sample = next(render_task(task, [{"thing": "2 + 2", "answer": target}]))
    assert (sample.choices, sample.target) == ((), Target(texts=texts))


def test_a_template_may_write_a_list_of_accepted_texts(tmp_path: Path) -> None:
    task = load_one(tmp_path, **GENERATION, doc_to_target="{{ answers }}")
    sample = next(render_task(task, [{"thing": "2 + 2", "answers": ["4", "four"]}]))
    assert sample.target == Target(texts=("4", "four"))


def test_samples_of_one_passage_share_a_cluster(tmp_path: Path) -> None:
    task = load_one(tmp_path, doc_to_cluster="{{ idx.passage }}")
    rows = [{**row, "idx": {"passage": number // 2}} for number, row in enumerate(ROWS)]
    assert [sample.cluster for sample in render_task(task, rows)] == ["0", "0", "1"]


def test_examples_stand_between_description_and_question(tmp_path: Path) -> None:
    task = load_one(tmp_path, description="Colours.\n", fewshot_config={"sampler": "first_n"})
    sample = next(render_task(task, [{"thing": "sky", "label": 0}], ROWS, num_fewshot=2))
    assert sample.prompt.as_text == "Colours.\ngrass is green\n\nblood is red\n\nsky is"


def test_a_bad_row_of_the_pool_is_reported_as_such(tmp_path: Path) -> None:
    pool = [{"thing": "sky", "label": 7}]
    task = load_one(tmp_path, fewshot_config={"sampler": "first_n"})
    with pytest.raises(InvalidRow, match=r"row 0 \(from 0\): few-shot pool: the label 7"):
        list(render_task(task, ROWS, pool, num_fewshot=1))


def test_a_row_of_the_pool_that_cannot_be_read_is_reported_as_such(tmp_path: Path) -> None:
    def pool() -> Iterator[SourceRow]:
        yield ROWS[0]
        raise UnreadableRow(2, "not valid JSON")

    source = RowsInMemory({"validation": ROWS, "train": pool()})
    with pytest.raises(InvalidRow, match=r"row 1 \(from 0\): few-shot pool: not valid JSON"):
        open_task(load_one(tmp_path), source, num_fewshot=1)


def test_the_pool_is_opened_only_when_examples_are_shown(tmp_path: Path) -> None:
    source = RowsInMemory({"validation": ROWS})
    rendered = open_task(load_one(tmp_path), source)
    assert len(list(rendered.samples)) == 3
    assert rendered.fewshot_provenance is None
    with pytest.raises(KeyError):
        open_task(load_one(tmp_path), source, num_fewshot=1)


def test_examples_that_the_file_holds_need_no_pool(tmp_path: Path) -> None:
    own = {"sampler": "first_n", "samples": [{"thing": "coal", "label": 0}, {"thing": "leaf", "label": 1}]}
    task = load_one(
        tmp_path, dataset={"id": "org/colours", "split": "validation"}, num_fewshot=1, fewshot_config=own
    )
    source = RowsInMemory({"validation": ROWS})
    rendered = open_task(task, source)
    assert next(rendered.samples).prompt.as_text == "coal is red\n\ngrass is"
    assert rendered.fewshot_provenance is None
    assert next(open_task(task, source, num_fewshot=2).samples).prompt.as_text.startswith(
        "coal is red\n\nleaf is green"
    )
    with pytest.raises(FewshotPoolTooSmall) as refused:
        list(open_task(task, source, num_fewshot=3).samples)
    assert refused.value.facts == {"task": "colours", "num_fewshot": 3, "pool_size": 2}


def test_of_a_pool_whose_first_rows_are_shown_no_more_is_read(tmp_path: Path) -> None:
    endless = ({"thing": str(number), "label": 0} for number in count())
    task = load_one(tmp_path, fewshot_config={"sampler": "first_n", "drop_document": False})
    rendered = open_task(task, RowsInMemory({"validation": ROWS, "train": endless}), num_fewshot=2)
    assert next(rendered.samples).prompt.as_text == "0 is red\n\n1 is red\n\ngrass is"


def test_a_sample_carries_its_row_and_the_size_of_both(tmp_path: Path) -> None:
    row = {"thing": "grass", "label": 1, "other": ["é", None]}
    sample = next(render_task(load_one(tmp_path), [row]))
    assert sample.doc_json == '{"thing":"grass","label":1,"other":["é",null]}'
    assert sample.stored_bytes == sample.size_bytes + len(sample.doc_json.encode())
    assert sample.digest == next(render_task(load_one(tmp_path), ROWS)).digest


def test_a_row_that_is_too_large_to_keep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRow, match="bytes as JSON, more than the 4194304 allowed"):
        list(render_task(load_one(tmp_path), [{**ROWS[0], "other": "x" * MAX_SAMPLE_BYTES}]))


def test_examples_come_from_the_pool_of_the_task(tmp_path: Path) -> None:
    source = RowsInMemory({"validation": ROWS, "train": [{"thing": "coal", "label": 0}]})
    task = load_one(tmp_path, num_fewshot=1, fewshot_config={"drop_document": False})
    rendered = open_task(task, source)
    assert next(rendered.samples).prompt.as_text == "coal is red\n\ngrass is"
    assert rendered.fewshot_provenance is not None


def test_a_pool_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FewshotPoolTooSmall) as refused:
        list(render_task(load_one(tmp_path), ROWS, ROWS, num_fewshot=3))
    assert refused.value.facts == {"task": "colours", "num_fewshot": 3, "pool_size": 3}


def test_a_task_without_a_pool_shows_no_examples(tmp_path: Path) -> None:
    task = load_one(tmp_path, dataset={"id": "org/colours", "split": "validation"})
    with pytest.raises(NoFewshotPool):
        open_task(task, RowsInMemory({"validation": ROWS}), num_fewshot=1)


def test_examples_that_stand_in_make_a_task_a_stand_in() -> None:
    official = Provenance("mirror", "rows", "r1")
    shown = Provenance("mirror", "examples", "r2", is_stand_in=True)

    assert not RenderedTask(iter(()), official).is_stand_in
    assert RenderedTask(iter(()), official, shown).is_stand_in
    assert RenderedTask(iter(()), official, shown).revision == "r1 examples r2"


def test_rows_and_examples_are_those_with_the_values(tmp_path: Path) -> None:
    dataset = {"id": "org/colours", "split": "validation", "fewshot_split": "train", "where": {"label": 1}}
    task = load_one(tmp_path, dataset=dataset, fewshot_config={"sampler": "first_n", "drop_document": False})
    rows = RowsInMemory({"validation": ROWS, "train": reversed(ROWS[:2])})
    samples = list(open_task(task, rows, num_fewshot=1).samples)
    assert [sample.prompt.as_text for sample in samples] == [
        "grass is green\n\ngrass is",
        "grass is green\n\nmoss is",
    ]
    assert [sample.doc_id for sample in samples] == [0, 1]
    assert str(task.rows) == "org/colours (split 'validation', label 1)"


def test_a_row_without_the_column_by_which_rows_are_chosen_is_named(tmp_path: Path) -> None:
    task = load_one(tmp_path, dataset={"id": "x", "split": "test", "where": {"level": 5}})
    with pytest.raises(InvalidRow, match=r"row 0 .*it has no column 'level', by which rows are chosen"):
        list(open_task(task, RowsInMemory({"test": ROWS})).samples)
