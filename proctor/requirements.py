"""The oldest Python and the oldest server of Postgres that Proctor runs with."""

OLDEST_PYTHON = (3, 11)
# Major version: statements return the old row beside the new one, which Postgres does from 18 on.
OLDEST_POSTGRES = 18
