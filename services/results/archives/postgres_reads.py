"""Queries over archived outcomes: the statement that reads the table, with rows of Parquet in its place.

So filters, exports and comparisons are written once, and mean the same for every run.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.common.postgres import Fetch
from services.common.sql.queries import Query
from services.results.archives.archive import MAX_ROWS, Row, Selection, counts_in
from services.results.archives.errors import TooManyRows
from services.results.archives.ports import ArchivedRows
from services.results.archives.postgres import part_from_row
from services.results.runs.errors import RunArchived

TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(?:outcomes|current_outcomes|outcome_records)\b")
# The limit keeps the planner at the index of the table; rows that are sent have none, and are joined.
_LOOKED_UP = re.compile(r"(\brollout = (?:0|\w+\.rollout))\s+LIMIT 1\b")
_COMMENTS = re.compile(r"\A(?:\s*--[^\n]*\n)*\s*")
# Views over the table, in the order of their use: each is written out behind the rows.
_VIEWS = ("current_outcomes", "outcome_records")
_RUNS = ("run_id", "first_run_id", "second_run_id", "judged_run_id", "source_run_id")
# They change rows, of runs that are not closed or gone; the others are those of archives themselves.
_WRITES = frozenset(
    {
        "record_outcomes",
        "delete_outcomes",
        "list_outcomes_to_archive",
        "digest_stored_outcomes",
        "digest_given_outcomes",
        "clear_outcomes",
        "restore_outcomes",
        "count_unarchived",
        "measure_answers",
    }
)

Values = Mapping[str, Any]
# The rows of a run that a query needs; the arguments are its values, the parameter of the run and its epoch.
Select = Callable[[Values, str, int], Selection]


def _keys(values: Values, _: str, __: int) -> Selection:
    return Selection(keys=frozenset(zip(values["samples"], values["rollouts"], strict=True)))


def _matched(values: Values, _: str, __: int) -> Selection:
    """Without a part to look for, answers are only measured."""
    has_part = values["text"] != ""
    return Selection(
        keys=frozenset(zip(values["samples"], values["rollouts"], strict=True)),
        texts=None if has_part else ("scores", "answer_text", "prediction"),
    )


def _brief(values: Values, _: str, __: int) -> Selection:
    return Selection(
        keys=frozenset(zip(values["samples"], values["rollouts"], strict=True)),
        texts=("failure_message", "prediction", "scores"),
    )


def _first_rollouts(values: Values, _: str, __: int) -> Selection:
    return Selection(keys=frozenset((sample, 0) for sample in values["samples"]))


def _behind(values: Values, **more: Any) -> Selection:
    end = values["before_sample"] if "before_sample" in values else values["end_sample"]
    return Selection(after=(values["after_sample"], values["after_rollout"]), before_sample=end, **more)


def _listed_keys(values: Values, _: str, __: int) -> Selection:
    return _behind(values, limit=values["limit"], texts=())


def _counting_keys(values: Values, _: str, epoch: int) -> Selection:
    counts, status = counts_in(epoch), values.get("status")

    def wanted(row: Row) -> bool:
        return counts(row) and (status is None or row.status == status)

    return _behind(values, wanted=wanted, limit=values["limit"], texts=())


def _sorted(values: Values, _: str, epoch: int) -> Selection:
    has_lengths = values["sort"] == "length" or values["min_characters"] is not None
    has_lengths = has_lengths or values["max_characters"] is not None
    return Selection(
        after=(values["first_sample"], -1),
        before_sample=values["end_sample"],
        wanted=counts_in(epoch),
        texts=("scores", "answer_text", "prediction") if has_lengths else ("scores",),
    )


def _exported(values: Values, _: str, __: int) -> Selection:
    return _behind(values, wanted=counts_in(values["epoch"]), max_bytes=values["max_bytes"])


def _answers_of_batch(values: Values, _: str, __: int) -> Selection:
    counts = counts_in(values["epoch"])

    def wanted(row: Row) -> bool:
        return row.rollout == 0 and row.is_answered and counts(row)

    return _behind(values, wanted=wanted, max_bytes=values["max_bytes"])


def _errors_of_batch(values: Values, _: str, __: int) -> Selection:
    """All of the window: a sample without an outcome is an error."""
    return _behind(values, wanted=lambda row: row.rollout == 0, texts=("failure_message",))


def _beside_samples(values: Values, _: str, epoch: int) -> Selection:
    return _behind(
        values, wanted=counts_in(epoch), limit=values["limit"], max_bytes=max(1, values["max_bytes"])
    )


def _paired(values: Values, run: str, epoch: int) -> Selection:
    side = run.removesuffix("_run_id")
    after, end = (values[f"{side}_from"], -1), values[f"{side}_to"]
    return Selection(after=after, before_sample=end, wanted=counts_in(epoch), texts=("scores",))


def _flipped(values: Values, run: str, epoch: int) -> Selection:
    if run == "first_run_id":
        after, end = (values["after_sample"] + 1, -1), values["first_end"]
    else:
        after, end = (values["second_from"], -1), values["second_end"]
    texts = ("scores", "prediction")
    return Selection(after=after, before_sample=end, wanted=counts_in(epoch), texts=texts)


def _judged(_: Values, run: str, epoch: int) -> Selection:
    """Verdicts of judges, and the lengths of the answers that they judge."""
    texts = ("scores",) if run == "run_ids" else ("answer_text", "prediction")
    return Selection(wanted=counts_in(epoch) if run == "run_ids" else None, texts=texts)


def _disputed(values: Values, run: str, epoch: int) -> Selection:
    """Verdicts of judges on a run, whose own answers are not annotated once they are archived."""
    if run == "run_id":
        raise RunArchived(run_id=values["run_id"])
    return Selection(wanted=counts_in(epoch), texts=("scores",))


def _styled(values: Values, _: str, epoch: int) -> Selection:
    texts = ("answer_text", "prediction") if values["has_style"] else ()
    return Selection(wanted=counts_in(epoch), texts=texts)


def _marked(_: Values, run: str, epoch: int) -> Selection:
    """Verdicts of a judging run; of the run that it judges only marks are read."""
    if run == "judged_run_id":
        return Selection(keys=frozenset())
    return Selection(wanted=counts_in(epoch), texts=("scores",))


def _counted(_: Values, __: str, epoch: int) -> Selection:
    return Selection(wanted=counts_in(epoch), texts=())


# What can be asked of archived runs; all else says that the run is to be restored first.
SELECTS: Mapping[str, Select] = {
    "match_outcomes": _matched,
    "weigh_outcomes": _keys,
    "list_whole_outcomes": _keys,
    "list_brief_outcomes": _brief,
    "find_unmarkable": _keys,
    "digest_answers": _first_rollouts,
    "list_outcome_keys": _listed_keys,
    "list_outcomes": _counting_keys,
    "list_outcomes_of_status": _counting_keys,
    "sort_outcomes": _sorted,
    "export_lines": _exported,
    "export_columns": _exported,
    "export_chosen_lines": _keys,
    "export_chosen_columns": _keys,
    "export_batch_answers": _answers_of_batch,
    "export_batch_errors": _errors_of_batch,
    "export_outcomes": _beside_samples,
    "list_pairs": _paired,
    "list_flips": _flipped,
    "find_disputed": _disputed,
    "list_verdicts_of_judges": _judged,
    "list_verdicts": _marked,
    "list_drawn_scores": _counted,
    "count_annotations": _counted,
    "list_pair_verdicts": _judged,
    "list_answer_styles": _styled,
}


class ArchivedReads:
    """Makes the calls of a session. Rows are read for one statement, and bounded: see `MAX_ROWS`."""

    def __init__(self, archived: ArchivedRows) -> None:
        self._archived = archived
        self._views: dict[str, str] = {}

    async def call(self, query: Query, values: Values, fetch: Fetch) -> list[Any]:
        """The statement and its arguments. Raises `RunArchived` for what is not read from archives."""
        if query.name in _WRITES or not TABLE.search(query.statement):
            return query.call(values)
        runs = [(name, str(values[name])) for name in _RUNS if name in values]
        runs += [("run_ids", str(run_id)) for run_id in values.get("run_ids", ())]
        found = await fetch("find_archived", run_ids=sorted({run_id for _, run_id in runs}))
        epochs = {row["run_id"]: row["epoch"] for row in found}
        if not epochs:
            return query.call(values)
        select = SELECTS.get(query.name)
        if select is None:
            raise RunArchived(run_id=next(iter(epochs)))
        rows: list[Any] = []
        for name, run_id in runs:
            if run_id in epochs:
                rows += await self._rows(run_id, select(values, name, epochs[run_id]), fetch)
            if len(rows) > 2 * MAX_ROWS:
                raise RunArchived(run_id=run_id)
        live = sorted({run_id for _, run_id in runs} - set(epochs))
        statement = await self._statement(query, fetch, has_live=bool(live))
        return [statement, *query.arguments(values), rows, *([live] if live else [])]

    async def _rows(self, run_id: str, selection: Selection, fetch: Fetch) -> Sequence[Any]:
        parts = [part_from_row(row) for row in await fetch("list_archive_parts", run_id=run_id)]
        try:
            return await self._archived.rows(run_id, parts, selection)
        except TooManyRows as error:
            raise RunArchived(run_id=run_id) from error

    async def _statement(self, query: Query, fetch: Fetch, *, has_live: bool) -> str:
        number = len(query.parameters) + 1
        table = f"SELECT * FROM sent_outcomes(${number}::outcomes[])"  # noqa: S608  # the number of a parameter
        if has_live:
            # Within its own definition the name is still that of the table.
            table += f" UNION ALL SELECT * FROM outcomes WHERE run_id = ANY (${number + 1}::uuid[])"  # noqa: S608  # likewise
        named = {"outcomes": f"MATERIALIZED ({table})"}
        for view in _VIEWS:
            if re.search(rf"\b{view}\b", query.statement):
                named[view] = f"({await self._view(view, fetch)})"
        defined = ", ".join(f"{name} AS {rows}" for name, rows in named.items())
        text = _LOOKED_UP.sub(r"\1", _COMMENTS.sub("", query.statement, count=1))
        rest = f", {text.removeprefix('WITH ')}" if text.startswith("WITH ") else f" {text}"
        return f"WITH {defined}{rest}"

    async def _view(self, name: str, fetch: Fetch) -> str:
        if name not in self._views:
            [row] = await fetch("read_view", name=name)
            self._views[name] = row[0].rstrip("; \n")
        return self._views[name]
