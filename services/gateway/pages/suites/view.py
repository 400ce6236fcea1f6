"""Views of suites for their templates."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import suite_service_pb2 as suite_pb2
from proctor.values.scoring import with_choice_instruction
from services.gateway.api.suites.schemas import SampleShown, SuiteListed
from services.gateway.http.presentation import present

_MAX_QUOTED = 200
# A suite to begin with: complete but for its data file.
EXAMPLE = """\
suite: cities
description: In which country is a city?
tasks:
  - task: city_country
    version: "1"
    dataset: {file: cities.csv}
    output_type: multiple_choice
    doc_to_text: "Question: In which country is {{city}}?\\nAnswer:"
    doc_to_choice: [France, Italy, Spain]
    doc_to_target: country
    metric_list: [{metric: acc}]
"""


@dataclass(frozen=True, slots=True)
class SuiteListView:
    """Suites with `text` in their names."""

    rows: Sequence[SuiteListed]
    text: str


@dataclass(frozen=True, slots=True)
class SampleSelection:
    """A row of a task, from 0, with so many examples; None for as many as the task says."""

    task: str
    row: int
    num_fewshot: int | None


@dataclass(frozen=True, slots=True)
class RenderedSample:
    """A sample as a model would get it; `fault` is why there is none."""

    sample: SampleShown | None = None
    fault: str = ""

    @property
    def source(self) -> str:
        """The row that the sample was made of, as JSON."""
        return _json(self.sample.doc) if self.sample else ""

    @property
    def targets(self) -> Sequence[str]:
        """The target as texts: its own, or the right ones of the choices."""
        if not self.sample:
            return ()
        target, choices = self.sample.target, self.sample.choices
        right = target.right_choices or ([] if target.choice is None else [target.choice])
        return target.texts or [choices[index] for index in right if index < len(choices)]

    @property
    def in_words(self) -> str:
        """The prompt of choices, or its last turn, for a model that answers in words; "" without choices."""
        if not self.sample or not self.sample.choices:
            return ""
        prompt = self.sample.messages[-1].content if self.sample.messages else self.sample.prompt or ""
        return with_choice_instruction(prompt, self.sample.choices)

    @property
    def facts(self) -> Mapping[str, str]:
        sample = self.sample
        if sample is None:
            return {}
        metrics = ", ".join(
            f"{use.metric} {_json(use.options) if use.options else ''}".strip() for use in sample.metrics
        )
        facts = {
            "Output": sample.output_type.replace("_", " "),
            "Metrics": metrics,
            "Stops at": ", ".join(json.dumps(text, ensure_ascii=False) for text in sample.stop),
            "Maximum tokens": str(sample.max_tokens or ""),
            "Answers per row": str(sample.repeats) if sample.repeats > 1 else "",
            "Filters": _json(sample.filters) if sample.filters else "",
            "Rows from": f"{sample.row_source} {sample.row_source_revision[:12]}".strip(),
            "Split": "not the official one" if sample.is_stand_in else "",
        }
        return {name: value for name, value in facts.items() if value}


@dataclass(frozen=True, slots=True)
class SuiteView:
    """A suite with one sample as a model would get it."""

    suite: SuiteListed
    chosen: SampleSelection
    rendered: RenderedSample
    ask: str

    @property
    def has_repeats(self) -> bool:
        """Whether some task asks for several answers to a row."""
        return any(task.repeats > 1 for task in self.suite.tasks)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file of the version that a new one is written from. `size`: in bytes."""

    path: str
    size: int
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The version of a user's suite that a new one is written from."""

    suite: str
    version: int
    files: Sequence[StoredFile] = ()


@dataclass(frozen=True, slots=True)
class EditorView:
    """A suite in the editor: its text, its faults or its summary, and a sample once one was asked for.

    `task` and `row` choose the sample; `task` "" is the first.
    """

    text: str
    faults: Sequence[suite_pb2.SuiteFault] = ()
    suite: SuiteListed | None = None
    is_checked: bool = False
    of: StoredVersion | None = None
    rendered: RenderedSample | None = None
    task: str = ""
    row: int = 0

    def quoted(self, line: int) -> str:
        """The text of a line; "" for one that the text does not have."""
        lines = self.text.splitlines()
        return lines[line - 1].strip()[:_MAX_QUOTED] if 0 < line <= len(lines) else ""


def editor_view(
    text: str, checked: suite_pb2.CheckSuiteResponse, of: StoredVersion | None = None
) -> EditorView:
    is_valid = checked.HasField("suite") and not checked.faults
    suite = present(SuiteListed, checked.suite) if is_valid else None
    return EditorView(text, checked.faults, suite, is_checked=True, of=of)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
