"""Which judges of a run are a panel: those of several models that have answered one question."""

from collections.abc import Iterable, Sequence


def asked_of_panels(judges: Iterable[tuple[str, str, str]]) -> Sequence[str]:
    """`judges`: question, model and id of each completed judging run, but those of pairs, newest first.

    Returns the newest run of each question that several models have answered: the panel is read by it.
    """
    newest: dict[str, str] = {}
    models: dict[str, set[str]] = {}
    for question, model, run_id in judges:
        newest.setdefault(question, run_id)
        models.setdefault(question, set()).add(model)
    return [run_id for question, run_id in newest.items() if len(models[question]) > 1]
