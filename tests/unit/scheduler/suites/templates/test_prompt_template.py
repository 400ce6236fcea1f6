"""Templates: columns, plain text and Jinja, in a sandbox."""

import pytest

from services.scheduler.suites.templates.errors import InvalidTemplate, RowFault
from services.scheduler.suites.templates.prompt_template import compile_template


def test_a_column_is_taken_as_it_is() -> None:
    assert compile_template("label").value({"label": 3}) == 3


def test_a_template_keeps_its_trailing_newline() -> None:
    assert compile_template("{{a}}\n").text({"a": "x"}) == "x\n"


def test_plain_text_that_is_no_column_stands_for_itself() -> None:
    assert compile_template("Say something.").text({"a": "x"}) == "Say something."


def test_regex_replace_of_lm_eval_is_there() -> None:
    template = compile_template("{{ text | regex_replace('[0-9]+', '#') }}")
    assert template.text({"text": "7 of 12"}) == "# of #"


def test_a_column_of_any_name_is_one_of_the_row() -> None:
    template = compile_template("{{ row['Right answer'] }} of {{ options }}")
    assert template.text({"Right answer": "b", "options": 2}) == "b of 2"
    assert compile_template("{{ row }}").text({"row": "x"}) == "x"
    with pytest.raises(RowFault, match="Right answer"):
        template.text({"options": 2})


@pytest.mark.parametrize("text", ['["a", "b"]', "['a', 'b']", '("a", "b")'])
def test_a_list_that_is_written_as_a_text_is_parsed(text: str) -> None:
    assert compile_template("{{ (choices | parse)[1] }}").text({"choices": text}) == "b"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ ([answer ~ '.'] | string)[1:-1] }}", '"it\'s."'),
        (
            "{% for word in words if word != 'b' %}{{ loop.index }}/{{ loop.length }}{{ word }} {% endfor %}",
            "1/2a 2/2c ",
        ),
        ("{{ words | unique(case_sensitive=true) | sort | join(', ') }}", "a, b, c"),
        ("{{ words | map('upper') | list }}", "['A', 'B', 'C']"),
        ("{{ ['b', 'z'] | select('in', words) | list }}", "['b']"),
        ("{{ words.index('c') }}{{ words[1:] | length }}{{ words[-1] }}", "22c"),
        (
            "{% set n = namespace(x=0) %}{% for w in words %}{% set n.x = n.x + 2 %}{% endfor %}{{ n.x }}",
            "6",
        ),
        (
            "{% macro row(x, y=1) %}<{{ x }}{{ y }}>{% endmacro %}{{ row('a') }}{{ row('b', y=2) }}",
            "<a1><b2>",
        ),
        ("{% filter upper %}{{ answer }}{% endfilter %}", "IT'S"),
        ("{% for first, second in pairs.items() %}{{ first }}={{ second }};{% endfor %}", "x=1;y=2;"),
        (
            "{{ '%s is %.2f' | format('a', 1) }} {{ '%5.1f' % 2 }} {{ '{:>4}|{a}'.format(7, a='b') }}",
            "a is 1.00   2.0    7|b",
        ),
        ("{{ words | batch(2) | list }}{{ missing | default('none') }}", "[['a', 'b'], ['c']]none"),
        ("{{ 2 ** 10 }} {{ 'ab' * 2 }} {{ 7 % 4 }} {{ [1] + [2] }}", "1024 abab 3 [1, 2]"),
        (
            "{{ words[[0, 1].index(1)] }}{{ 'yes' if 'a' in words and not missing is defined else 'no' }}",
            "byes",
        ),
    ],
)
def test_what_templates_of_lm_eval_use_is_there(source: str, text: str) -> None:
    row = {"answer": "it's", "words": ["a", "b", "c"], "pairs": {"x": 1, "y": 2}}
    assert compile_template(source).text(row) == text


@pytest.mark.parametrize(
    ("pattern", "replacement", "text"),
    [
        (r"(\w+) (\w+)", r"\2 \g<1>", "two one."),
        ("[aeiou]", "", "n tw."),
        ("(?i)ONE|x", "1", "1 two."),
        ("two{e}", "", "one two."),
    ],
)
def test_patterns_are_those_of_python(pattern: str, replacement: str, text: str) -> None:
    template = compile_template("{{ said | regex_replace(pattern, replacement) }}")
    assert template.text({"said": "one two.", "pattern": pattern, "replacement": replacement}) == text


def test_only_as_many_occurrences_are_replaced_as_asked() -> None:
    assert compile_template("{{ 'aaa' | regex_replace('a', 'b', count=2) }}").text({}) == "bba"


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
        (
            "{{ premise ~ hypothesis }}",
            {"premise": "a", "hypothesis": None},
            "the field 'hypothesis' is null",
        ),
        ("{{ n.upper() }}", {"n": 1}, "the template '{{ n.upper() }}' failed: "),
        (
            "{{ a | regex_replace('(', '') }}",
            {"a": "x"},
            "the template \"{{ a | regex_replace('(', '') }}\" failed",
        ),
        (
            "{{ a | regex_replace(b, '') }}",
            {"a": "x", "b": "(?:x{1000}){1000000}"},
            "the template \"{{ a | regex_replace(b, '') }}\" failed: it repeats too much: ",
        ),
    ],
)
def test_an_unfit_row_is_reported_by_its_field(source: str, row: dict[str, object], problem: str) -> None:
    with pytest.raises(RowFault) as raised:
        compile_template(source).text(row)
    assert raised.value.problem.startswith(problem)


@pytest.mark.parametrize("source", ["{{ text ", "{% if text %}yes", "{{ text | no_such_filter }}"])
def test_a_broken_template_does_not_compile(source: str) -> None:
    with pytest.raises(InvalidTemplate):
        compile_template(source)


def test_a_long_template_is_reported_by_its_beginning() -> None:
    with pytest.raises(RowFault) as raised:
        compile_template("x" * 1000 + "{{ 1 // 0 }}").text({})
    assert len(raised.value.problem) < 300


def test_a_template_cannot_change_a_row() -> None:
    row = {"words": ["a"]}
    with pytest.raises(RowFault):
        compile_template("{{ words.append('b') or '' }}").text(row)
    assert row == {"words": ["a"]}
