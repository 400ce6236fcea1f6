"""What a log says of itself fits a run, or the log is refused."""

from dataclasses import replace

import pytest

from proctor.values.scoring import MetricUse, OutputType
from services.scheduler.imports.errors import LogRefused
from services.scheduler.imports.fitting_log import MAX_FIGURES, MAX_LOG_FIGURES, MAX_NOTES, fitting
from services.scheduler.imports.logged_run import LoggedRun, LoggedTask

TASK = LoggedTask(
    task="qa", version="1", output_type=OutputType.GENERATE_UNTIL, metrics=(MetricUse("exact_match"),)
)
MANY = tuple(MetricUse(f"m{number}") for number in range(MAX_FIGURES + 1))
LOG = LoggedRun(tool="lm-eval", model="hf/m", benchmark="qa", tasks=(TASK,))


def test_a_usual_log_stays_as_it_is() -> None:
    assert fitting("log.zip", LOG, ()) == LOG
    assert fitting("log.zip", LOG, ("other", "qa")) == LOG


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (replace(LOG, model="hf/\n"), "The name of its model"),
        (replace(LOG, tasks=(replace(TASK, version="v" * 201),)), "The name of its version"),
        (replace(LOG, tasks=(replace(TASK, metrics=(MetricUse(""),)),)), "The name of its metric"),
        (
            replace(LOG, tasks=(replace(TASK, filters_json='[{"name": "\\u0007", "filter": []}]'),)),
            "The name of its filter",
        ),
        # A run of this benchmark would be taken for one that judges the run of this id.
        (replace(LOG, benchmark="0f0e0d0c-0b0a-4908-8706-050403020100"), "has the name of a run"),
        (replace(LOG, benchmark="{0F0E0D0C0B0A49088706050403020100}"), "has the name of a run"),
        (replace(LOG, benchmark=f"ds_{'0' * 32}"), "has the name of a run or an upload"),
        (replace(LOG, tasks=(TASK, TASK)), "Two of its tasks"),
        (replace(LOG, tasks=(replace(TASK, metrics=MANY),)), "qa has 201 metrics with their filters"),
    ],
)
def test_what_names_nothing_is_refused(log: LoggedRun, problem: str) -> None:
    with pytest.raises(LogRefused, match=problem):
        fitting("log.zip", log, ())


def test_a_suite_that_has_none_of_its_tasks_is_not_the_suite_of_the_log() -> None:
    with pytest.raises(LogRefused, match=r"The suite has none of its tasks \(qa\)"):
        fitting("log.zip", LOG, ("arc", "boolq"))


def test_words_figures_and_notes_are_kept_to_a_number() -> None:
    figures = {f"m{number}": 0.5 for number in range(MAX_LOG_FIGURES + 5)}
    log = replace(
        LOG,
        tasks=(replace(TASK, figures={"": 1.0, **figures}),),
        environment={"args": "x" * 10_000},
        notes=tuple(f"Note {number}." for number in range(MAX_NOTES + 7)),
    )
    kept = fitting("log.zip", log, ())
    assert list(kept.tasks[0].figures)[:1] == ["m0"]
    assert len(kept.tasks[0].figures) == MAX_LOG_FIGURES
    assert kept.environment == {"args": "x" * 500}
    assert kept.notes[-1] == "There are 7 more notes."
