"""Templates of text and names alone give what Jinja gives, for any row."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.suites.templates.errors import RowFault
from services.scheduler.suites.templates.prompt_template import PromptTemplate, compile_template
from services.scheduler.suites.yaml_installed_suites import load_suites

SUITES = Path(__file__).parents[5] / "suites"
NAMES = ("a", "b", "row", "range", "loop", "caller", "self", "true")
TEXTS = st.sampled_from(
    ["", "x", "%", "%s %%d", "{{b}}", "{% raw %}", "<b>&amp;</b>", "é\u2028\r\n", "\ud800"]
)
VALUES = st.one_of(
    TEXTS,
    st.text("ab{}%\\ \n\x00<é\u2028", max_size=5),
    st.sampled_from([None, 0, True, 1.5, ["x"], {"b": "x"}]),
)
ROWS = st.dictionaries(st.sampled_from(NAMES), VALUES)
PARTS = st.one_of(
    st.sampled_from(
        [*(f"{{{{{name}}}}}" for name in NAMES), "{{- a -}}", "{{ b }}\n", "{{ 'x' }}", "{{ a ~ b }}"]
    ),
    st.sampled_from(
        ["%", "%%s", "\n", "\r\n", " text ", "{# note #}", "{% raw %}{{ a }}{% endraw %}", "{ ", "}}"]
    ),
)


def outcome(template: PromptTemplate, row: Mapping[str, object]) -> tuple[str, object]:
    try:
        return "text", template.value(row)
    except RowFault as fault:
        return fault.problem, fault.field


def by_jinja(template: PromptTemplate) -> PromptTemplate:
    return replace(template, plain=None)


@given(st.lists(PARTS, max_size=5).map("".join), ROWS)
def test_any_template_gives_what_jinja_gives(source: str, row: dict[str, object]) -> None:
    template = compile_template(source)
    assert outcome(template, row) == outcome(by_jinja(template), row)


def test_templates_of_the_suites_give_what_jinja_gives() -> None:
    registry = load_suites(SUITES)
    tasks = [task for name in registry.names() for task in registry.suite(name).tasks]
    values = [getattr(task.templates, each.name) for task in tasks for each in fields(task.templates)]
    plain = {value.source: value for value in values if isinstance(value, PromptTemplate) and value.plain}
    assert len(plain) > 20
    for template in plain.values():
        for value in ("", "%s {{x}} é\n", None, 7):
            row = dict.fromkeys(template.fields, value)
            assert outcome(template, row) == outcome(by_jinja(template), row)
