"""Entities and tags of words in an answer: `format_span` and `regex_pos` of lm-evaluation-harness.

Both leave what metrics by code of their tasks compare: named entities and parts of speech.
"""

import re
from collections.abc import Sequence

_LABELS = {
    "PER": ("person", "persons", "people", "per"),
    "LOC": ("location", "counties", "places", "country", "continent", "loc"),
    "ORG": ("organization", "company", "org"),
    "DATE": ("time", "date"),
}
_LABEL_OF = {word: label for label, words in _LABELS.items() for word in words}
_WORD = re.compile(rf"\b({'|'.join(sorted(_LABEL_OF, key=len, reverse=True))})\s*:")
_ENTITIES = re.compile(rf"\b({'|'.join(_LABELS)}):\s*([^$]+)")
_TAGGED = re.compile(r"\('[^']*', '([^']*)'\)")
# What code gets of an answer without tags.
NO_TAGS = ("invalid",)


def written_entities(text: str) -> str:
    """`per: ada $ loc: ghana` of an answer that names them by label, separated by `$` or line breaks.

    Several of one label may stand behind it with commas; `none` is no entity.
    """
    labelled = _WORD.sub(lambda found: f"{_LABEL_OF[found[1]]}:", text.lower())
    in_one_line = labelled.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
    named = [
        (label, entity.strip())
        for label, listed in _ENTITIES.findall(in_one_line)
        for entity in listed.split(",")
    ]
    return " $ ".join(f"{label.lower()}: {entity}" for label, entity in named if entity != "none")


def part_of_speech_tags(text: str) -> Sequence[str]:
    """The second of each pair `('word', 'TAG')`."""
    return _TAGGED.findall(text)
