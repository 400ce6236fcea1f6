"""The pages that the rail and the list of keys name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the rail; `g` and then `key` opens it."""

    path: str
    name: str
    key: str

    def holds(self, path: str) -> bool:
        """The page, or one below it."""
        return path == self.path or (self.path != "/" and path.startswith(f"{self.path}/"))


# One per line, in the order of the rail.
ENTRIES = (
    Entry("/", "Overview", "o"),
    Entry("/runs", "Runs", "r"),
    Entry("/compare", "Compare", "c"),
    Entry("/history", "History", "h"),
    Entry("/leaderboard", "Leaderboard", "l"),
    Entry("/suites", "Suites", "s"),
    Entry("/datasets", "Data sets", "d"),
    Entry("/batches", "Batches", "b"),
    Entry("/rollouts", "Rollouts", "t"),
    Entry("/queue", "Queue", "q"),
    Entry("/settings", "Settings", ","),
)
