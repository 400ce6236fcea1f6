"""The completion probe: does a model go on with a row's own words, or with those of a paraphrase?

It is a suite of two choices, so that its figure is that of any run: with an interval, on pages, compared.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from proctor.cli.results.contamination.rows import Row
from proctor.client.errors import Refused
from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import CUT, with_reasoning_apart

# Words of a row: fewer leave nothing to go on from.
MIN_WORDS = 12
_WORD = re.compile(r"\S+")
_SAME = re.compile(r"\w+", re.UNICODE)
_PROMPT = """\
Rewrite the second part of a text in other words. Keep its meaning, its language and about its length, \
so that it still continues the first part. Answer with the rewritten second part alone.

First part:
{begin}

Second part:
{own}"""


@dataclass(frozen=True, slots=True)
class HalvedRow:
    """`own` is what follows `begin` in the row, behind white space."""

    name: str
    begin: str
    own: str

    @property
    def request(self) -> Mapping[str, str]:
        """A line of a data set: asks for a paraphrase of the second half."""
        return {"id": self.name, "prompt": _PROMPT.format(begin=self.begin, own=self.own)}


def halved(rows: Sequence[Row]) -> Sequence[HalvedRow]:
    """At the middle word. Rows of fewer than `MIN_WORDS` words are left out."""
    found = []
    for row in rows:
        words = [*_WORD.finditer(row.text)]
        if len(words) >= MIN_WORDS:
            last, first = words[len(words) // 2 - 1], words[len(words) // 2]
            begin, own = row.text[: last.end()].lstrip(), row.text[first.start() :].rstrip()
            found.append(HalvedRow(row.name, begin, own))
    return found


def paraphrase(text: str, finish_reason: str) -> str:
    """What an answer says behind its reasoning; "" of one that was cut off, which is no whole second half."""
    if finish_reason == CUT:
        return ""
    return with_reasoning_apart(Answer(text, finish_reason=finish_reason)).text.strip()


def probe_lines(rows: Sequence[HalvedRow], paraphrases: Mapping[str, str]) -> Iterator[Mapping[str, object]]:
    """The rows of the suite. Left out are rows without a paraphrase, and with one of the same words."""
    place = 0
    for row in rows:
        paraphrase = paraphrases.get(row.name, "").strip()
        if not paraphrase or _SAME.findall(paraphrase.lower()) == _SAME.findall(row.own.lower()):
            continue
        # In turn, so that a model that prefers a place is right on half of the rows.
        yield {"row": row.name, "begin": row.begin, "own": row.own, "paraphrase": paraphrase, "place": place}
        place = 1 - place


def prepare_folder(folder: Path, name: str) -> None:
    """Makes the folder. Raises Refused if it cannot be written, or has the files of an earlier probe."""
    suite, rows = _files_of(folder, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = next((file for file in (suite, rows) if file.exists()), None)
    except OSError as error:
        raise _unwritable(folder, error) from error
    if found:
        # People put paraphrases of their own into it.
        raise Refused(f"{found} exists: give another --name or --output, or remove it.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"{folder} cannot be written: Permission denied.")


def write_probe(folder: Path, name: str, lines: Sequence[Mapping[str, object]]) -> Path:
    """The file of the suite, with its rows beside it. Raises Refused."""
    suite, rows = _files_of(folder, name)
    task = {
        "task": name,
        "version": "1",
        "dataset": {"file": rows.name},
        "output_type": "multiple_choice",
        "doc_to_text": "{{begin}}",
        "doc_to_choice": "{{ ([own, paraphrase] if place == 0 else [paraphrase, own]) | tojson }}",
        "doc_to_target": "place",
        # By character, since one of the two is longer.
        "metric_list": [{"metric": "acc_norm"}, {"metric": "acc"}],
        "metadata": {"about": "Completion probe: a row's own second half, and a paraphrase of it."},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        rows.write_text(written, encoding="utf-8")
        suite.write_text(yaml.safe_dump(task, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error
    return suite


def _files_of(folder: Path, name: str) -> tuple[Path, Path]:
    """Of the suite, and of its rows."""
    return folder / f"{name}.yaml", folder / f"{name}.jsonl"


def _unwritable(folder: Path, error: OSError) -> Refused:
    return Refused(f"{folder} cannot be written: {error.strerror or error}.")
