"""Makes the sample of a row that was rendered: with its digest, its sizes and what else it needs."""

import base64

from proctor.values.code import CodeCheck
from proctor.values.sample import Prompt
from services.scheduler.suites.rendering.row_renderer import RowRenderer
from services.scheduler.suites.rendering.sample import (
    MAX_SAMPLE_BYTES,
    RenderedRow,
    RenderedSample,
    digest_of,
    encode_row,
    netstrings,
    row_as_json,
)
from services.scheduler.suites.rows.row_source import SourceRow
from services.scheduler.suites.rows.task_code import is_code_column
from services.scheduler.suites.suite import CodeRule, TaskDefinition
from services.scheduler.suites.templates.errors import RowFault


class SampleMaker:
    """Makes the samples of one task. What its rows have in common is looked up once."""

    def __init__(self, task: TaskDefinition, renderer: RowRenderer) -> None:
        self._name, self._version = task.name, task.version
        self._code = task.code
        self._rollout_column = task.rollout_column
        # Rows have files of a rollout, and what code made of them, which the sample has as they are.
        self._hides_columns = bool(task.rollout_column) or task.has_code
        self._is_scored_by_code = task.scoring_code is not None
        self._cluster = renderer.cluster

    def sample(self, position: int, row: SourceRow, rendered: RenderedRow) -> RenderedSample:
        """Raises `RowFault`."""
        check = None if self._code is None else _code_check(self._code, row, rendered)
        rollout_spec = self._rollout_spec(row) if self._rollout_column else b""
        encoded = self._encoded(rendered, check, rollout_spec)
        kept_row = _kept(self._without_hidden(row) if self._hides_columns else row)
        if self._is_scored_by_code:
            # The code gets the row: samples that differ in it are others.
            encoded += netstrings([kept_row])
        return RenderedSample(
            position=position,
            doc_id=position,
            digest=digest_of(encoded),
            prompt=Prompt(rendered.prompt),
            choices=rendered.choices,
            target=rendered.target,
            cluster=self._cluster(row),
            doc_json=kept_row.decode(),
            code_check=check,
            rollout_spec=rollout_spec,
            choice_ending=rendered.choice_ending,
            size_bytes=len(encoded),
            stored_bytes=len(encoded) + len(kept_row),
        )

    def _without_hidden(self, row: SourceRow) -> SourceRow:
        hidden = {self._rollout_column, *filter(is_code_column, row)}
        return {name: value for name, value in row.items() if name not in hidden}

    def _rollout_spec(self, row: SourceRow) -> bytes:
        column = self._rollout_column
        try:
            return base64.b64decode(str(row[column]), validate=True)
        except (KeyError, ValueError) as error:
            raise RowFault(f"its {column} is missing or not base64", column) from error

    def _encoded(self, rendered: RenderedRow, check: CodeCheck | None, rollout_spec: bytes) -> bytes:
        try:
            encoded = encode_row(self._name, self._version, rendered)
            if check is not None:
                encoded += netstrings(
                    [check.prefix.encode(), check.answer.encode(), repr(check.timeout_seconds).encode()]
                )
        except UnicodeEncodeError as error:
            raise RowFault("its text is not valid Unicode (a lone surrogate)") from error
        if b"\0" in encoded:
            raise RowFault("its text holds a NUL character, which cannot be stored")
        if rollout_spec:
            # After the look for NULs: these are bytes and no text.
            encoded += netstrings([rollout_spec])
        if len(encoded) > MAX_SAMPLE_BYTES:
            raise RowFault(f"the sample has {len(encoded)} bytes, more than the {MAX_SAMPLE_BYTES} allowed")
        return encoded


def _code_check(rule: CodeRule, row: SourceRow, rendered: RenderedRow) -> CodeCheck:
    prefix = rule.prefix.text(row) if rule.prefix else ""
    return CodeCheck(prefix, rendered.target.texts[0], rule.answer, rule.timeout_seconds)


def _kept(row: SourceRow) -> bytes:
    try:
        kept = row_as_json(row)
    except TypeError as error:
        raise RowFault("its lists and objects are nested too deeply") from error
    if len(kept) > MAX_SAMPLE_BYTES:
        raise RowFault(f"the row has {len(kept)} bytes as JSON, more than the {MAX_SAMPLE_BYTES} allowed")
    return kept
