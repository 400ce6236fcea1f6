"""How many outcomes fit into one message."""

from collections.abc import Sequence

# Half of what a message may have: the last outcome may go a little beyond it, and sizes are estimates.
MAX_BYTES_PER_PAGE = 8 * 1024 * 1024
# Ids, counts, times and scores of one outcome, beside its texts.
BYTES_OF_NUMBERS = 256


def fitting_count(weights: Sequence[int]) -> int:
    """How many items of these sizes, in order, fit into one message: at least one, however large."""
    total = 0
    for count, bytes_of_one in enumerate(weights):
        total += bytes_of_one
        if count and total > MAX_BYTES_PER_PAGE:
            return count
    return len(weights)
