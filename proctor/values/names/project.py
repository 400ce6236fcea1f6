"""Numbers of projects: any number groups runs; those from `FIRST_DECLARED` on are of declared projects."""

# Below 2**53, so that JSON holds all of them. Nobody takes such a number for runs by chance: it is no date,
# and no time in any unit up to microseconds.
FIRST_DECLARED = 9_000_000_000_000_000
MAX_PROJECT_CHARACTERS = 64


def is_declared(project_id: int) -> bool:
    """Whether only members and operators see what is in it."""
    return project_id >= FIRST_DECLARED


def declared_or_none(project_id: int) -> int:
    """The project if it is declared, else 0: what is in no declared project is shared by all such."""
    return project_id if is_declared(project_id) else 0
