"""The rules of the name, the tags and the note of a run, and a change of some of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from proctor.values.generation import Problem
from proctor.values.names.run_labels import (
    MAX_NAME_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    RunLabels,
)
from services.common.requests.request_fields import hidden_problem


@dataclass(frozen=True, slots=True)
class LabelChange:
    """What is None stays as it is. `tags` replace the present ones before others are added and removed."""

    name: str | None = None
    note: str | None = None
    tags: tuple[str, ...] | None = None
    added_tags: tuple[str, ...] = ()
    removed_tags: tuple[str, ...] = ()

    def of(self, labels: RunLabels) -> RunLabels:
        tags = [*(labels.tags if self.tags is None else self.tags), *self.added_tags]
        removed = set(_stripped(self.removed_tags))
        return tidy(
            replace(
                labels,
                name=labels.name if self.name is None else self.name,
                note=labels.note if self.note is None else self.note,
                tags=tuple(tag for tag in _stripped(tags) if tag not in removed),
            )
        )


def tidy(labels: RunLabels) -> RunLabels:
    """Without blanks around the texts; lines of the note end alike, and each tag is there once."""
    note = labels.note.replace("\r\n", "\n").strip()
    tags = tuple(dict.fromkeys(_stripped(labels.tags)))
    return RunLabels(labels.name.strip(), tags, note)


def labels_problem(labels: RunLabels) -> Problem | None:
    """Why labels, once they are tidy, are refused."""
    one_line = labels.note.replace("\n", "").replace("\t", "")
    return (
        _length_problem("name", labels.name, MAX_NAME_CHARACTERS)
        or hidden_problem("name", labels.name)
        or _tags_problem(labels.tags)
        or _length_problem("note", labels.note, MAX_NOTE_CHARACTERS)
        or hidden_problem("note", one_line)
    )


def labels_in_words(labels: RunLabels) -> str:
    """The labels for the list of changes, in which a note is as long as a name."""
    note = labels.note if len(labels.note) <= MAX_NAME_CHARACTERS else f"{labels.note[:MAX_NAME_CHARACTERS]}…"
    parts = {"name": labels.name, "tags": ", ".join(labels.tags), "note": " ".join(note.split())}
    return "; ".join(f"{field}: {text}" for field, text in parts.items() if text)


def _tags_problem(tags: tuple[str, ...]) -> Problem | None:
    if len(tags) > MAX_TAGS:
        return Problem("tags", f"tags are {len(tags)}, but must be at most {MAX_TAGS}. Remove some.")
    for tag in tags:
        # A list of tags in one text is separated by commas.
        if not tag or "," in tag:
            return Problem("tags", f'tags hold "{tag}", but each must be a text without commas.')
        if problem := _length_problem("tags", tag, MAX_TAG_CHARACTERS) or hidden_problem("tags", tag):
            return problem
    return None


def _length_problem(field: str, text: str, most: int) -> Problem | None:
    if len(text) <= most:
        return None
    held = f'hold "{text[:20]}…", which has' if field == "tags" else "has"
    return Problem(field, f"{field} {held} {len(text)} characters, but must have at most {most}.")


def _stripped(tags: Iterable[str]) -> list[str]:
    return [tag.strip() for tag in tags]
