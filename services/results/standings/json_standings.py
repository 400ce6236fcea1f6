"""Standings and baselines as the JSON that Postgres keeps, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from proctor.values.scoring import ScoringMethod
from services.results.figures.figure import Figure
from services.results.standings.baseline import TaskBaselines
from services.results.standings.run_terms import RunTerms
from services.results.standings.standing import RunStanding, SuiteBaselines, SuiteFigure

_Fields = Mapping[str, Any]


def standing_to_json(standing: RunStanding) -> str:
    return orjson.dumps(asdict(standing)).decode()


def standing_from_json(text: str) -> RunStanding:
    fields: _Fields = orjson.loads(text)
    terms: _Fields = fields["terms"]
    return RunStanding(
        RunTerms(
            **{
                **terms,
                "scoring_method": terms["scoring_method"] and ScoringMethod(terms["scoring_method"]),
                "missing_tasks": tuple(terms["missing_tasks"]),
                "stand_in_tasks": tuple(terms["stand_in_tasks"]),
                # Those kept before there were data sets have none.
                "metrics": tuple((name, options) for name, options in terms.get("metrics", ())),
            }
        ),
        _suite_figures(fields["figures"]),
        fields["answered"],
        fields["failed"],
        fields["unparsed"],
        tuple(fields["failing_tasks"]),
        fields.get("dataset_name", ""),
    )


def baselines_to_json(baselines: SuiteBaselines | TaskBaselines) -> str:
    """Of a suite or of a task: names, metrics, figures."""
    by_name = {
        name: {metric: asdict(figure) for metric, figure in figures.items()}
        for name, figures in baselines.items()
    }
    return orjson.dumps(by_name).decode()


def baselines_from_json(text: str) -> SuiteBaselines:
    return {name: _suite_figures(figures) for name, figures in orjson.loads(text).items()}


def task_baselines_from_json(text: str) -> TaskBaselines:
    return {
        name: {metric: Figure(**one) for metric, one in figures.items()}
        for name, figures in orjson.loads(text).items()
    }


def _suite_figures(fields: Mapping[str, _Fields]) -> dict[str, SuiteFigure]:
    return {
        metric: SuiteFigure(Figure(**figure["figure"]), figure["task_count"])
        for metric, figure in fields.items()
    }
