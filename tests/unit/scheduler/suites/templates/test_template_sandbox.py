"""A template reads no files, does not loop for ever and eats no memory; its limit is reported."""

import pytest

from services.scheduler.suites.templates.budget import MAX_CHARACTERS, RenderingBudget
from services.scheduler.suites.templates.errors import InvalidTemplate, RowFault
from services.scheduler.suites.templates.prompt_template import compile_template

STEPS = "takes more than 1,000,000 steps"
CHARACTERS = "handles more than 33,554,432 characters"
ROW = {
    "a": "x",
    "big": "word " * 200_000,
    "many": [str(number) for number in range(2000)],
    "below": [-(10**9)],
}
DOUBLED = "{% set x = ['a'] %}" + "{% set x = [x, x] %}" * 60


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{% for j in range(100000) if false %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{% for j in many|map('upper') %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        "{% for i in range(1000) %}{% if many == many %}{% endif %}{% endfor %}",
        "{% for i in range(1000) %}{{ many|length }}{% endfor %}",
        "{{ below|map('(macro)', 1, 1)|list }}" + "{% for i in range(99999) %}" * 2 + "{% endfor %}" * 2,
    ],
)
def test_a_template_that_goes_on_and_on_is_stopped(source: str) -> None:
    assert STEPS in failure_of(source)


@pytest.mark.parametrize(
    "use",
    [
        "{{ x }}", "{{ x ~ '' }}", "{{ x|string }}", "{{ x|tojson }}", "{{ '%s' % x }}", "{{ x + x }}",
        "{{ '{}'.format(x) }}", "{{ x == 1 }}", "{{ 1 in x }}", "{{ x is in many }}", "{{ {(x,): 1} }}",
        "{{ many[x] }}", "{{ many.index(x) }}", "{{ dict(a=x)|length }}",
    ],
)  # fmt: skip
def test_a_value_that_holds_itself_many_times_over_is_not_worked_on(use: str) -> None:
    assert STEPS in failure_of(DOUBLED + use)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10**10 }}", "{{ 10**10 * [1] }}", "{{ 'a'.center(10**10) }}", "{{ 'a'.zfill(10**10) }}",
        "{{ 'a'|center(10**10) }}", "{{ big|indent(10**9) }}", "{{ big|replace('', big) }}",
        "{{ big.replace('w', big) }}", "{{ big.join(many) }}", "{{ many|join(big) }}",
        "{{ many|map('upper')|join(big) }}", "{{ '%1000000000d' % 1 }}", "{{ '%.1000000000f' % 1.0 }}",
        "{{ ('%(a)s' * 10000) % {'a': big} }}", "{{ '%9999999999d'|format(1) }}",
        "{{ ('%(a)s' * 10000)|format(a=big) }}", "{{ '{:9999999999}'.format(1) }}",
        "{{ '{:{w}}'.format(1, w=9999999999) }}", "{{ ('{0}' * 10000).format(big) }}",
        "{{ ('{a}' * 10000).format_map({'a': big}) }}", "{{ [1]|batch(10**9, 'x')|list }}",
        "{{ 1.5|round(10**7, 'ceil') }}", "{{ big|regex_replace('', big) }}",
        "{{ big|regex_replace('(?=(.*))', '\\\\1\\\\1') }}", "{% set x = 'a' %}" + "{% set x = x ~ x %}" * 60,
        "{% set x = 'a' %}" + "{% set x = x + x %}" * 60,
        "{% for i in range(9999) %}" + "x" * 9999 + "{% endfor %}",
        "{% for i in range(100) %}{% if 'z' in big %}{% endif %}{% endfor %}",
        "{% for i in range(100) %}{% set x = big[1:] %}{% endfor %}",
    ],
)  # fmt: skip
def test_a_template_that_grows_text_is_stopped_before_it_is_made(source: str) -> None:
    assert CHARACTERS in failure_of(source)


@pytest.mark.parametrize(
    "source", ["{{ 10 ** 10 ** 10 ** 10 ** 10 }}", "{% set x = 3 %}" + "{% set x = x * x %}" * 60]
)
def test_numbers_do_not_grow_without_end(source: str) -> None:
    assert "whole numbers of more than 10,000 bits" in failure_of(source)


def test_a_regular_expression_has_an_end_in_time() -> None:
    reported = failure_of("{{ ('a' * 60)|regex_replace('(a|aa)+$b', '') }}")
    assert reported.endswith("was stopped: its regular expressions take more than 1 s")


@pytest.mark.parametrize(
    "source",
    [
        "{{ a.__class__.__mro__ }}", "{{ a|attr('__class__') }}", "{{ '{a.__class__}'.format(a=a) }}",
        "{{ cycler.__init__.__globals__ }}", "{{ self._TemplateReference__context }}",
        "{{ (1).to_bytes(10**10, 'big') }}", "{{ {}.fromkeys(range(99999)) }}", "{{ a.encode() }}",
        "{{ many.append('x') }}", "{{ open('/etc/passwd') }}", "{{ lipsum() }}", "{{ range }}",
        "{{ many|map('upper') }}", "{% set n = namespace(x=1) %}{% set n.x = n %}{{ n }}",
    ],
)  # fmt: skip
def test_what_is_no_part_of_a_row_is_out_of_reach(source: str) -> None:
    assert failure_of(source)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{% include '/etc/passwd' %}", "line 1 of the template: there is no 'include' here"),
        ("{% import '/etc/passwd' as x %}", "there is no 'import' here"),
        ("{% from 'x' import y %}", "there is no 'import' here"),
        ("{% extends 'x' %}", "there is no 'extends' here"),
        ("{% block b %}{% endblock %}", "there is no 'block' here"),
        ("{% for i in a recursive %}{{ loop(a) }}{% endfor %}", "there are no recursive loops here"),
        ("{{ many|random }}", "No filter named 'random'"),
        ("{{ a }}" * 6000, "it has more than 5,000 parts"),
        ("{{ a" + "|upper" * 200 + " }}", "its parts are nested more than 100 deep"),
        ("{{ a" + "+ a" * 200 + " }}", "its parts are nested more than 100 deep"),
        ("{{ " + "(" * 5000 + "a" + ")" * 5000 + " }}", "it cannot be compiled"),
        ("{% for x in a %}" * 30 + "{% endfor %}" * 30, "it cannot be compiled: too many statically nested"),
        ("{{ " + "9" * 6000 + " }}", "it cannot be compiled"),
        ("{{ a }}" + "x" * 300_000, "it has more than 262,144 characters"),
    ],
)
def test_a_template_that_cannot_be_bounded_is_refused_when_it_is_read(source: str, problem: str) -> None:
    with pytest.raises(InvalidTemplate, match="^(?s:.*)" + problem.replace("(", r"\(")):
        compile_template(source)


def test_nothing_is_computed_while_a_template_is_compiled() -> None:
    compile_template(
        "{% if false %}{{ 'a' * 10**11 }}{{ 'a'|center(10**11) }}{{ 'a' ~ 'b' * 10**11 }}{% endif %}"
    )


def test_each_rendering_has_a_budget_of_its_own() -> None:
    template = compile_template("{% for word in words %}{{ word|upper }}{% endfor %}")
    row = {"words": ["x" * 1000] * 3000}
    for _ in range(5):
        assert len(template.text(row)) == 3_000_000


def test_what_is_taken_back_is_no_gain() -> None:
    budget = RenderingBudget()
    budget.charge_characters(-5)
    budget.charge_steps(-5)
    assert budget == RenderingBudget()
    assert budget.charge(["ab", {"k": b"cd"}, 7]) == 5
    assert budget.characters == MAX_CHARACTERS - 5


def failure_of(source: str) -> str:
    with pytest.raises(RowFault) as raised:
        compile_template(source).text(ROW)
    return raised.value.problem


def test_what_grows_is_counted_and_works_within_a_loop() -> None:
    loop = "{%% for n in ['b'] %%}{{ %s }}{%% endfor %%}"
    assert compile_template(loop % "'a-a'.replace('-', n)").text(ROW) == "aba"
    assert compile_template(loop % "'a-a-'|replace('-', n, count=1)").text(ROW) == "aba-"
    assert CHARACTERS in failure_of(loop % "big.replace('w', big)")
