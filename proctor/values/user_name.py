"""What a user may be called: names are shown to others as they are."""

MAX_USER_LETTERS = 128
# In the list of priorities: all users that it does not name.
EVERYBODY = "*"


def is_user_name(text: str) -> bool:
    """Whether it is 1 to 128 printable characters without blanks around them, and not `*`."""
    has_form = 0 < len(text) <= MAX_USER_LETTERS and text.isprintable() and text == text.strip()
    return has_form and text != EVERYBODY
