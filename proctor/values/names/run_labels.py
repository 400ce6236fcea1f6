"""Words by which people tell runs apart: they change nothing that is evaluated."""

from dataclasses import dataclass

MAX_NAME_CHARACTERS = 120
MAX_TAGS = 20
MAX_TAG_CHARACTERS = 50
MAX_NOTE_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class RunLabels:
    """The name of a run, its tags in order, and a note; each may be empty."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""


def tag_of_order(request_id: str) -> str:
    """The tag by which the runs of one order of several models are found together."""
    return f"order-{request_id.replace('-', '')[:12]}"


def tags_in(text: str) -> list[str]:
    """The tags of a text that separates them by commas, each once."""
    return list(dict.fromkeys(tag for part in text.split(",") if (tag := part.strip())))
