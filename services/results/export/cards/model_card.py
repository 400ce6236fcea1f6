"""The figures of a run as the `model-index` block of a model card, which the hub shows beside the model.

A card is Markdown that begins with the block between two lines of dashes. The fields are those of
https://huggingface.co/docs/hub/model-cards#evaluation-results: a result for each task, with its data set and
its metrics. Texts are written as JSON, which is YAML.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proctor.values.names.model_name import split_model
from services.results.export.exported_run import ExportedRun
from services.results.export.ports import ExportRow, RowFormat
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import TaskSummary


@dataclass(frozen=True, slots=True)
class ModelCardFile:
    run: ExportedRun

    def begin(self) -> bytes:
        name = split_model(self.run.record.plan.facts.model)[1].rpartition("/")[2]
        lines = ["---", "model-index:", f"- name: {_text(name)}", "  results:"]
        tasks = [task for task in self.run.summary.tasks if any(_known(task))]
        if not tasks:
            lines[-1] += " []"
        for task in tasks:
            lines += _result(task)
        return "\n".join([*lines, "---", ""]).encode()

    def write(self, _: Sequence[ExportRow]) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""


def _result(task: TaskSummary) -> Iterator[str]:
    yield "  - task:"
    yield "      type: text-generation"
    yield "    dataset:"
    yield f"      name: {_text(task.task)}"
    # The hub takes the name of a data set here; of rows that are a file it is the file.
    words = task.row_source.split() or [task.task]
    yield f"      type: {_text(words[0])}"
    if len(words) > 2:
        yield f"      config: {_text(words[1])}"
    if len(words) > 1:
        yield f"      split: {_text(words[-1])}"
    if task.row_source_revision:
        yield f"      revision: {_text(task.row_source_revision)}"
    yield "    metrics:"
    for metric, figure in _known(task):
        yield f"    - type: {_text(metric.partition(',')[0])}"
        yield f"      value: {figure.mean!r}"
        yield f"      name: {_text(_described(metric, figure, task))}"
        yield "      verified: false"


def _known(task: TaskSummary) -> list[tuple[str, Figure]]:
    return [(metric, figure) for metric, figure in task.figures.items() if figure.mean is not None]


def _described(metric: str, figure: Figure, task: TaskSummary) -> str:
    words = [metric, f"{task.num_fewshot}-shot", f"n={figure.n}"]
    if figure.ci_low is not None and figure.ci_high is not None:
        words.append(f"95% {figure.ci_low:.4g} to {figure.ci_high:.4g}")
    if task.unparsed:
        words.append(f"{task.unparsed / task.answered:.1%} unparsed")
    return ", ".join(words)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


MODEL_CARD = RowFormat(
    "_model_card.md", "text/markdown; charset=utf-8", ModelCardFile, rows=None, has_figures=True
)
