"""Renders rows by the suite's own YAML templates: the model learns what a run asks, to the byte."""

import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
import yaml

from proctor.starter import make_rows
from proctor.starter.make_rows import Row


@dataclass(frozen=True, slots=True)
class Example:
    """A question and its answer: the delimiter stands between the two, the separator before the next."""

    prompt: str
    answer: str
    delimiter: str
    separator: str
    choices: tuple[str, ...]


class TaskTemplate:
    """One task file of the suite, as far as the model needs it."""

    def __init__(self, suite_dir: Path, task: str) -> None:
        definition = yaml.safe_load((suite_dir / f"{task}.yaml").read_text(encoding="utf-8"))
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # noqa: S701  # no HTML
        self._prompt = environment.from_string(definition["doc_to_text"])
        self._choices = tuple(definition.get("doc_to_choice", ()))
        target = definition["doc_to_target"]
        self._target = environment.from_string(target if "{{" in target else f"{{{{{target}}}}}")
        self._delimiter: str = definition["target_delimiter"]
        self._separator: str = definition["fewshot_delimiter"]

    def render(self, row: Row) -> Example:
        target = self._target.render(row)
        return Example(
            prompt=self._prompt.render(row),
            answer=self._choices[int(target)] if self._choices else target,
            delimiter=self._delimiter,
            separator=self._separator,
            choices=self._choices,
        )


def held_out_questions(suite_dir: Path, task: str) -> set[Hashable]:
    return {make_rows.row_identity(task, row) for row in make_rows.read_rows(suite_dir, task, "test")}


def training_examples(suite_dir: Path, task: str, rng: random.Random) -> Iterator[Example]:
    """The train rows, then endless fresh rows of the same kind; none asks what a test row asks."""
    template = TaskTemplate(suite_dir, task)
    for row in make_rows.read_rows(suite_dir, task, "train"):
        yield template.render(row)
    for row in make_rows.draw_rows(task, rng, held_out_questions(suite_dir, task)):
        yield template.render(row)


def held_out_examples(suite_dir: Path, task: str) -> list[Example]:
    template = TaskTemplate(suite_dir, task)
    return [template.render(row) for row in make_rows.read_rows(suite_dir, task, "test")]
