"""How long a run is expected to take, in words."""

_BOUNDS = (
    (60.0, "under 1 minute"),
    (2 * 60.0, "1-2 minutes"),
    (5 * 60.0, "2-5 minutes"),
    (10 * 60.0, "5-10 minutes"),
    (30 * 60.0, "10-30 minutes"),
    (60 * 60.0, "30-60 minutes"),
    (3 * 3600.0, "1-3 hours"),
)


def duration_text(seconds: float | None) -> str:
    if seconds is None:
        return "unknown: neither what runs nor earlier runs of this model and suite tell"
    return next((words for bound, words in _BOUNDS if seconds < bound), "over 3 hours")
