"""How columns with names of their own become fields of a data set: a prompt over columns, a target, an id."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from proctor.values.generation import Problem

# Far more than a prompt of words around columns needs.
MAX_PROMPT_CHARACTERS = 20_000
MAX_COLUMN_CHARACTERS = 255
_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
# The usual names, most telling first. They are proposed, and never applied unless somebody asks for it.
_PROMPTS = ("question", "instruction", "query", "prompt", "problem", "input", "text", "sentence")
# Beside these a prompt may need a second column.
_CONTEXTS = ("context", "passage", "input")
_EXPECTED = (
    "best answer",
    "best_answer",
    "correct_answer",
    "expected_answer",
    "expected_output",
    "ground_truth",
)
_TARGETS = (
    *("target", "answer", "output", "label", "response", "reference", "expected", "completion", "solution"),
    *_EXPECTED,
)
_IDS = ("id", "qid", "question_id", "uid", "uuid")


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """`prompt` has a `{{column}}` for each column that it shows; `target` and `id` name a column or are "".

    `column.part` is a part of an object, and `column.0` an item of a list.
    """

    prompt: str
    target: str = ""
    id: str = ""

    def line(self) -> bytes:
        """What the digest of a mapped file begins with: NUL, as no file does, and the mapping as JSON."""
        return b"\0" + json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, each once, as they stand in the mapping."""
        named = (*columns_of(self.prompt), self.target, self.id)
        return tuple(dict.fromkeys(name for name in named if name))


def columns_of(prompt: str) -> list[str]:
    return _PLACEHOLDER.findall(prompt)


def pieces_of(prompt: str) -> list[str]:
    """Words and columns in turn: those at odd places are columns."""
    return _PLACEHOLDER.split(prompt)


def mapping_problem(mapping: ColumnMapping | None) -> Problem | None:
    """None for a mapping that can be used, and for none."""
    if mapping is None:
        return None
    for field, text in asdict(mapping).items():
        if "\0" in text:
            return Problem(f"mapping.{field}", f"{field} holds a NUL character. Leave it out.")
    if len(mapping.prompt) > MAX_PROMPT_CHARACTERS:
        size = f"{len(mapping.prompt):,} characters, but may have {MAX_PROMPT_CHARACTERS:,}"
        return Problem("mapping.prompt", f"prompt has {size}.")
    columns = columns_of(mapping.prompt)
    if not columns:
        sentence = "prompt names no column: write {{question}} where the column question belongs."
        return Problem("mapping.prompt", sentence)
    if "" in columns:
        sentence = "prompt has {{}} without a column: write its name between the braces."
        return Problem("mapping.prompt", sentence)
    for field, name in (("target", mapping.target), ("id", mapping.id)):
        if len(name) > MAX_COLUMN_CHARACTERS:
            sentence = f"{field} has {len(name)} characters, but may have {MAX_COLUMN_CHARACTERS}."
            return Problem(f"mapping.{field}", sentence)
    return None


def proposed_mapping(columns: Sequence[str]) -> ColumnMapping | None:
    """By the usual names, whatever their case; None where no column has a name of a prompt."""
    by_name = {name.strip().lower(): name for name in reversed(columns)}
    prompt = _first(by_name, _PROMPTS)
    if prompt is None:
        return None
    target = _first({name: each for name, each in by_name.items() if each != prompt}, _TARGETS)
    more = [by_name[name] for name in _CONTEXTS if name in by_name and by_name[name] not in (prompt, target)]
    # A passage stands before the question over it, the input of an instruction behind it.
    shown = [*more, prompt] if prompt.lower() == "question" else [prompt, *more]
    text = "\n\n".join(f"{{{{{name}}}}}" for name in shown)
    return ColumnMapping(text, target or "", _first(by_name, _IDS) or "")


def _first(by_name: dict[str, str], names: Sequence[str]) -> str | None:
    return next((by_name[name] for name in names if name in by_name), None)
