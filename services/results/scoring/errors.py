"""Errors of scoring."""


class ScoringImpossible(ValueError):
    """The answer does not fit the task: a choice without log-probability, a metric the task cannot have."""


class InvalidScoring(ValueError):
    """A task's scoring cannot be understood: an option, a filter or a metric that does not exist."""
