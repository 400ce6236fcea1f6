"""Templates: columns, plain text and Jinja, in a sandbox."""

import pytest

from services.scheduler.suites.prompt_template import FieldProblem, InvalidTemplate, compile_template


def test_a_column_is_taken_as_it_is() -> None:
    assert compile_template("label").value({"label": 3}) == 3


def test_a_template_keeps_its_trailing_newline() -> None:
    assert compile_template("{{a}}\n").text({"a": "x"}) == "x\n"


def test_plain_text_that_is_no_column_stands_for_itself() -> None:
    assert compile_template("Say something.").text({"a": "x"}) == "Say something."


def test_regex_replace_of_lm_eval_is_there() -> None:
    template = compile_template("{{ text | regex_replace('[0-9]+', '#') }}")
    assert template.text({"text": "7 of 12"}) == "# of #"


@pytest.mark.parametrize(
    ("source", "row", "problem"),
    [
        ("label", {}, "the field 'label' is missing"),
        ("{{premise}} {{hypothesis}}", {"premise": "a"}, "the field 'hypothesis' is missing"),
        ("{{premise}}", {"premise": None}, "the field 'premise' is null"),
        (
            "{{words.first}}",
            {"words": {}},
            "the template '{{words.first}}' failed: 'dict object' has no attribute",
        ),
        ("{{ 1 // n }}", {"n": 0}, "the template '{{ 1 // n }}' failed: "),
        ("{{ n.upper() }}", {"n": 1}, "the template '{{ n.upper() }}' failed: "),
        (
            "{{ a | regex_replace('(', '') }}",
            {"a": "x"},
            "the template \"{{ a | regex_replace('(', '') }}\" failed",
        ),
    ],
)
def test_an_unfit_row_is_told_by_its_field(source: str, row: dict[str, object], problem: str) -> None:
    with pytest.raises(FieldProblem) as raised:
        compile_template(source).text(row)
    assert raised.value.problem.startswith(problem)


@pytest.mark.parametrize("source", ["{{ text ", "{% if text %}yes", "{{ text | no_such_filter }}"])
def test_a_broken_template_does_not_compile(source: str) -> None:
    with pytest.raises(InvalidTemplate):
        compile_template(source)


def test_a_template_cannot_reach_into_python() -> None:
    template = compile_template("{{ text.__class__.__mro__ }}")
    with pytest.raises(FieldProblem):
        template.text({"text": "x"})


def test_a_template_cannot_change_a_row() -> None:
    row = {"words": ["a"]}
    with pytest.raises(FieldProblem):
        compile_template("{{ words.append('b') or '' }}").text(row)
    assert row == {"words": ["a"]}
