"""Samples of a log as a task of ours renders them, so that they pair with those of own runs.

A sample of ours may have what no log has: the texts behind letters, or wrong answers. They are made of the
row that the log has, and kept where the rest of what is made of it is what the log says.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from services.scheduler.suites.rendering.make_sample import SampleMaker
from services.scheduler.suites.rendering.row_renderer import RowRenderer
from services.scheduler.suites.rendering.sample import RenderedRow, RenderedSample
from services.scheduler.suites.suite import TaskDefinition
from services.scheduler.suites.templates.errors import RowFault


class RenderLogged:
    """`task` None: no task of ours has the name."""

    def __init__(self, task: TaskDefinition | None) -> None:
        self._task = task
        # Code that makes columns of rows is executed when a run is planned, not here.
        can_render = task is not None and task.rows.code is None and not task.rollout_column
        self._renderer = RowRenderer(task) if task is not None and can_render else None
        self._maker = SampleMaker(task, self._renderer) if task is not None and self._renderer else None

    def render(self, samples: Sequence[RenderedSample]) -> list[RenderedSample]:
        return [self._rendered(sample) for sample in samples]

    def _rendered(self, sample: RenderedSample) -> RenderedSample:
        if self._maker is None or self._renderer is None or sample.prompt.text is None or not sample.doc_json:
            return sample
        row = json.loads(sample.doc_json)
        try:
            own = self._renderer.render(row)
            if not self._is_same(sample, sample.prompt.text, own):
                return sample
            asked = replace(own, prompt=sample.prompt.text)
            made = self._maker.sample(sample.position, row, asked)
        except RowFault:
            return sample
        return replace(made, doc_id=sample.doc_id)

    def _is_same(self, sample: RenderedSample, asked: str, own: RenderedRow) -> bool:
        """The log may have examples before the question."""
        assert self._task is not None
        question = own.prompt.removeprefix(self._task.templates.description)
        theirs, ours = sample.target, own.target
        has_target = (
            (theirs.choice, theirs.right_choices) == (ours.choice, ours.right_choices)
            if own.choices
            else theirs.texts == ours.texts
        )
        return has_target and sample.choices == own.choices and asked.endswith(question)
