"""Numbers of a task's code that figures can be made of."""

# Of either sign: sums of their squares have room in a float.
_MAX_NUMBER = 1e100
UNUSABLE = f"which is no number from {-_MAX_NUMBER:g} to {_MAX_NUMBER:g}"


def is_usable(number: float) -> bool:
    """NaN is not; whole numbers of any size are read."""
    return abs(number) <= _MAX_NUMBER
