"""Values of users' files in sentences about them: short, and in words that JSON has for them."""

MAX_SHOWN_LETTERS = 60


def shown(text: str) -> str:
    """In quotes, and cut where it is long."""
    cut = text if len(text) <= MAX_SHOWN_LETTERS else f"{text[:MAX_SHOWN_LETTERS]}…"
    return f'"{cut}"'


def kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"
