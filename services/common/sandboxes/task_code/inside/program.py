"""The program inside the sandbox: reads rows as lines of JSON, calls the functions of a task, writes lines.

It is not trusted: what it executes may write any line. Python's standard library is all that it imports.
"""

import gc
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from services.common.sandboxes.task_code.inside.aggregating import figures
from services.common.sandboxes.task_code.inside.dataset import Dataset, stand_in
from services.common.sandboxes.task_code.inside.errors import fact_of
from services.common.sandboxes.task_code.inside.filtering import filter_functions, stand_in_filters
from services.common.sandboxes.task_code.inside.loading import SentSets, SetIsMissing, read_rows
from services.common.sandboxes.task_code.inside.modules import TaskFiles, is_installed
from services.common.sandboxes.task_code.inside.sampling import SAMPLER, Draws, stand_in_samplers
from services.common.sandboxes.task_code.inside.scoring import scoring_functions
from services.common.sandboxes.task_code.inside.scratch import Scratch

PROCESS_DOCS = "process_docs"
# These give rows without being given any: of each split by its name, or those of the examples.
CUSTOM_DATASET, SAMPLES = "custom_dataset", "samples"
_MAKERS = (CUSTOM_DATASET, SAMPLES, PROCESS_DOCS)
# As many rows are asked in one process, which is a copy of the one that imported the code: nothing that a
# function keeps reaches rows beyond.
BATCH_ROWS = 1024
# Of each batch the first row, each of this number and the last are asked again, in the opposite order.
AGAIN_EVERY = 64
# As lm-evaluation-harness seeds.
SEED, NUMPY_SEED = 0, 1234
_FAILED = 3

Row = dict[str, Any]


class Failed(Exception):
    """A function of the task failed at a row, or -1 for all; its cause is the task's own error."""

    def __init__(self, key: str, doc_id: int) -> None:
        super().__init__(key, doc_id)
        self.key = key
        self.doc_id = doc_id


class Program:
    """`functions` by the key of the task that names each one.

    `is_scoring`: rows are answers. They say their numbers, and each line leaves at once: it shows how far the
    code came. `scratch`: the folder that the code may write to; None where it may write to none.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        output: BinaryIO,
        folder: str,
        *,
        is_scoring: bool = False,
        scratch: Scratch | None = None,
    ) -> None:
        self._is_scoring = is_scoring
        self._scratch = scratch
        self._makers = {key: functions[key] for key in _MAKERS if key in functions}
        # What makes the rows that are asked.
        self._maker = next(reversed(self._makers), "")
        self.functions = {key: each for key, each in functions.items() if key not in self._makers}
        self._output = output
        self._folder = folder
        # Seeding takes as long as a short function.
        self._draws = any(b"random" in file.read_bytes() for file in Path(folder).rglob("*.py"))

    def run(self, rows: Iterator[Row], loads: Row) -> None:
        """`loads`: the `arguments` of `custom_dataset`, and the `split` that is asked."""
        count = 0
        given = iter(self._made_rows(list(rows), loads)) if self._makers else rows
        # A look for garbage would write to all rows, and so make a copy of each in each process.
        gc.disable()
        gc.freeze()
        if self._scratch:
            self._scratch.keep()
        while batch := list(islice(given, BATCH_ROWS)):
            self._in_copy(self._ask, batch, count)
            if self.functions and len(batch) > 1:
                self._in_copy(self._ask_again, batch, count)
            count += len(batch)
        self.write({"end": count})

    def draw(self, pool: list[Row], documents: Iterator[Row], wanted: Mapping[str, int]) -> None:
        """Draws examples of documents in order: a sampler keeps what it drew, and each draw depends on it.

        Two of them have to draw the same for the first batch: the other one in a copy of this process.
        """
        draws = Draws(self.functions.pop(SAMPLER), pool, wanted, self._made)
        first = list(islice(documents, BATCH_ROWS))
        gc.freeze()
        if self._scratch:
            self._scratch.keep()
        self._in_copy(lambda batch, start: self._draw(draws, batch, start), first, 0)
        if self._scratch:
            self._scratch.restore()
        self.write({"end": self._draw(draws, chain(first, documents), len(first))})

    def _draw(self, draws: Draws, documents: Iterable[Row], known: int) -> int:
        """Writes what is drawn for each document, of `known` ones only some again. Returns their number."""
        number = -1
        try:
            draw = draws.begun()
            for number, document in enumerate(documents):
                made = draw(document, number)
                if number >= known:
                    self._output.write(f'{{"made": {made}}}\n'.encode())
                elif number % AGAIN_EVERY == 0 or number == known - 1:
                    self._output.write(f'{{"again": {number}, "made": {made}}}\n'.encode())
        except (Failed, SetIsMissing):
            raise
        except BaseException as error:
            raise Failed(SAMPLER, number) from error
        return number + 1

    def write(self, line: Row) -> None:
        self._output.write(json.dumps(line, default=_plain).encode())
        self._output.write(b"\n")

    def fail(self, failed: Failed) -> NoReturn:
        error = failed.__cause__ or failed
        self.write({"error": fact_of(error, failed.key, failed.doc_id, self._folder)})
        self._output.flush()
        os._exit(_FAILED)

    def find_missing_set(self, loads: Row) -> None:
        """Raises SetIsMissing where `custom_dataset` loads what was not sent."""
        self._call(CUSTOM_DATASET, lambda make: _split_of(make(**loads["arguments"]), loads["split"]))

    def _made_rows(self, rows: list[Row], loads: Row) -> Iterable[Row]:
        if CUSTOM_DATASET in self._makers:
            arguments, split = loads["arguments"], loads["split"]
            rows = self._call(CUSTOM_DATASET, lambda make: list(_split_of(make(**arguments), split)))
        if SAMPLES in self._makers:
            rows = self._call(SAMPLES, lambda make: list(make()))
        elif PROCESS_DOCS in self._makers:
            given = [Dataset(rows)]
            # Room for copies, unless they are these rows or are made of them while they are read.
            del rows
            return list(self._call(PROCESS_DOCS, lambda make: list(make(given.pop()))))
        return rows

    def _call(self, key: str, call: Callable[[Callable[..., Any]], list[Row]]) -> list[Row]:
        try:
            return call(self._makers[key])
        except SetIsMissing:
            raise
        except BaseException as error:
            raise Failed(key, -1) from error

    def _in_copy(self, ask: Callable[[list[Row], int], object], batch: list[Row], start: int) -> None:
        """In a copy of this process, so that what the functions keep is gone afterwards."""
        self._output.flush()
        if self._scratch:
            self._scratch.restore()
        copy = os.fork()
        if copy == 0:
            try:
                ask(batch, start)
                self._output.flush()
            except Failed as failed:
                self.fail(failed)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        if code:
            os._exit(code if code > 0 else 128 - code)

    def _ask(self, batch: list[Row], start: int) -> None:
        for number, row in enumerate(batch, start):
            if not isinstance(row, Mapping):
                raise Failed(self._maker, number) from TypeError("a row is no dict")
            line: Row = {"row": dict(row)} if self._makers else {}
            try:
                kept = json.dumps(line, default=_plain)
            except (TypeError, ValueError) as error:
                raise Failed(self._maker, number) from error
            made = self._made(row, number)
            self._output.write(f'{kept[:-1]}{", " if line else ""}"made": {made}}}\n'.encode())
            if self._is_scoring:
                self._output.flush()

    def _ask_again(self, batch: list[Row], start: int) -> None:
        last = len(batch) - 1
        for index in reversed(range(len(batch))):
            if index % AGAIN_EVERY == 0 or index == last:
                made = self._made(batch[index], start + index)
                self._output.write(f'{{"again": {start + index}, "made": {made}}}\n'.encode())

    def _made(self, row: Row, number: int) -> str:
        """What the functions make of a row, as JSON. What they draw at random depends on its number alone."""
        if self._draws:
            seed = row["number"] if self._is_scoring else number
            _seed(seed, seed)
        made = {}
        for key, function in self.functions.items():
            try:
                made[key] = json.dumps(function(row), default=_plain)
            except SetIsMissing as missing:
                raise Failed(key, number) from _too_late(missing)
            except BaseException as error:
                raise Failed(key, number) from error
        return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in made.items()) + "}"


def _split_of(splits: Any, split: str) -> Any:
    if not isinstance(splits, Mapping) or split not in splits:
        raise KeyError(f"there is no split {split}")
    return splits[split]


def _too_late(missing: SetIsMissing) -> Exception:
    """Rows are loaded before one is asked."""
    path = missing.asked["path"]
    return NotImplementedError(f"load_dataset of {path}: only custom_dataset and process_docs may load rows")


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy, and rows of packages, as JSON has them."""
    for name in ("tolist", "item", "isoformat"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _seed(seed: int, numpy_seed: int) -> None:
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(numpy_seed)


def _rows(lines: Iterable[bytes]) -> Iterator[Row]:
    return (json.loads(line) for line in lines)


def _functions(named: Mapping[str, list[str]], files: TaskFiles) -> Iterator[tuple[str, Callable[..., Any]]]:
    for key, (path, name) in named.items():
        yield key, _function(key, path, name, files)


def _function(key: str, path: str, name: str, files: TaskFiles) -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = getattr(files.load(path), name)
    except SetIsMissing:
        raise
    except BaseException as error:
        raise Failed(key, -1) from error
    return found


def _program(header: Row, output: BinaryIO, files: TaskFiles, folder: str, scratch: str) -> Program:
    """Its functions make rows, or where the header says so, score answers or filter them."""
    written = Scratch(scratch)
    if "filters" in header:
        steps = {
            pipeline: [(_function("filter_list", path, name, files), options) for path, name, options in each]
            for pipeline, each in header["filters"].items()
        }
        return Program(filter_functions(steps, folder), output, folder, is_scoring=True, scratch=written)
    functions = dict(_functions(header["functions"], files))
    if "scores" in header:
        functions = scoring_functions(functions, header["scores"], folder)
    return Program(functions, output, folder, is_scoring="scores" in header, scratch=written)


def main(folder: str, scratch: str) -> None:
    """`folder` has the files of the task; `scratch` is emptied. What the code prints goes to stderr."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    header = json.loads(sys.stdin.buffer.readline())
    files = TaskFiles(Path(folder))
    sys.meta_path.insert(0, files)
    sets = SentSets()
    sets.read(header.get("sets", ()), sys.stdin.buffer)
    stand_in(sets.load_dataset)
    if not is_installed(files, "lm_eval"):
        stand_in_filters()
        stand_in_samplers()
    random.seed(SEED)
    program = Program({}, output, folder)
    try:
        program = _program(header, output, files, folder, scratch)
        _seed(SEED, NUMPY_SEED)
        if header.get("aggregates"):
            functions = program.functions
            for figure in figures(functions, _rows(sys.stdin.buffer), folder):
                program.write(figure)
            program.write({"end": len(functions)})
        elif "draws" in header:
            pool = read_rows(sys.stdin.buffer)
            program.draw(pool, _rows(sys.stdin.buffer), header["draws"])
        elif header.get("only_loads"):
            program.find_missing_set(header["loads"])
            program.write({"end": 0})
        else:
            program.run(_rows(sys.stdin.buffer), header.get("loads", {}))
        output.flush()
    except SetIsMissing as missing:
        if "loads" not in header:
            failed = Failed("load_dataset", -1)
            failed.__cause__ = _too_late(missing)
            program.fail(failed)
        program.write({"needs": missing.asked})
        output.flush()
    except Failed as failed:
        program.fail(failed)
