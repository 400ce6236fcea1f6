"""Few-shot examples that a class of the task draws, called as lm-evaluation-harness calls it."""

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from types import ModuleType
from typing import Any

from services.common.sandboxes.task_code.inside.modules import Absent

SAMPLER = "sampler"

Row = dict[str, Any]


class ContextSampler:
    """The base of samplers: draws at random. `df` are the rows that may be shown."""

    def __init__(
        self,
        df: Sequence[Row] | None = None,
        *,
        rnd: int | None = None,
        fewshot_indices: Sequence[int] | None = None,
        **kwargs: object,
    ) -> None:
        del kwargs
        self.rnd = Random(rnd)
        self.df: Sequence[Row] = df or []
        self.fewshot_indices = fewshot_indices
        self._loaded = False

    def sample(
        self, n: int, eval_doc: Row | None = None, df: Sequence[Row] | None = None, **kwargs: object
    ) -> Sequence[Row]:
        """`n` rows without `eval_doc`, for which one more is drawn; draws again if that is there twice."""
        del kwargs
        if n == 0:
            return []
        self.df = df or self.df
        if not eval_doc:
            return self.rnd.sample(self.fewshot_docs(), n)
        drawn = self.rm_eval_doc(eval_doc, self.rnd.sample(self.fewshot_docs(), n + 1), n)
        if len(drawn) == n:
            return drawn
        return self.rnd.sample(list(self.rm_eval_doc(eval_doc, self.fewshot_docs())), n)

    def set_rnd(self, rnd: int | None) -> "ContextSampler":
        self.rnd = Random(rnd)
        return self

    def replace_df(self, df: Sequence[Row]) -> "ContextSampler":
        self.df, self._loaded = df, False
        return self

    def fewshot_docs(self) -> list[Row]:
        if not self._loaded and self.fewshot_indices and self.df:
            self.df = [self.df[index] for index in self.fewshot_indices]
        self._loaded = True
        return list(self.df)

    @staticmethod
    def rm_eval_doc(doc: Row, _iter: Iterable[Row], n: int | None = None) -> Sequence[Row]:
        return [row for row in _iter if row != doc][:n]


class FirstNSampler(ContextSampler):
    """The first rows."""

    def sample(
        self, n: int, eval_doc: Row | None = None, df: Sequence[Row] | None = None, **kwargs: object
    ) -> Sequence[Row]:
        del df, kwargs
        rows = self.df if eval_doc is None else self.rm_eval_doc(eval_doc, self.df)
        if n > len(rows):
            raise ValueError(f"{n} examples are wanted, and there are {len(rows)}")
        return rows[:n]


def stand_in_samplers() -> None:
    """The module that samplers of tasks import from, where the package is not installed."""
    module = ModuleType("lm_eval.api.samplers")
    module.__dict__.update({each.__name__: each for each in (ContextSampler, FirstNSampler)})
    package = ModuleType("lm_eval.api")
    # What is absent of it fails where it is used, not where it is imported.
    package.__getattr__ = _of_package  # type: ignore[method-assign]  # PEP 562
    for each in (package, module):
        sys.modules.setdefault(each.__name__, each)


def _of_package(name: str) -> Any:
    return sys.modules.get(f"lm_eval.api.{name}") or getattr(Absent("lm_eval"), name)


class Draws:
    """The draws of one task: `sampler` draws `num_fewshot` of the rows `pool` for each document, in order.

    `word` makes what the functions of the task make of an example, in JSON, by the example and the document's
    number.
    """

    def __init__(
        self, sampler: Any, pool: list[Row], wanted: Mapping[str, int], word: Callable[[Row, int], str]
    ) -> None:
        self._sampler = sampler
        self._pool = pool
        self._wanted = wanted
        self._word = word
        self._indexes = {_text(row): index for index, row in reversed(list(enumerate(pool)))}

    def begun(self) -> Callable[[Row, int], str]:
        """A new sampler, as a function of a document and its number; what it gives is JSON."""
        if not (isinstance(self._sampler, type) and issubclass(self._sampler, _base())):
            raise TypeError("it is no subclass of lm_eval.api.samplers.ContextSampler")
        sampler = self._sampler(list(self._pool), rnd=None)
        sampler.set_rnd(self._wanted["seed"])

        def draw(document: Row, number: int) -> str:
            shown = sampler.sample(n=self._wanted["num_fewshot"], eval_doc=document or None)
            return f'{{"{SAMPLER}": [{", ".join(self._shown(shown, number))}]}}'

        return draw

    def _shown(self, rows: Iterable[Any], number: int) -> Iterator[str]:
        """Each example by its place in the pool; one that is not there as it is, as a row with its words."""
        for row in rows:
            text = _text(row)
            index = self._indexes.get(text)
            yield f'{{"row": {text}, "made": {self._word(row, number)}}}' if index is None else str(index)


def _base() -> type[ContextSampler]:
    """The installed package's own, or the stand-in."""
    found: type[ContextSampler] = importlib.import_module("lm_eval.api.samplers").ContextSampler
    return found


def _text(row: Any) -> str:
    if not isinstance(row, Mapping):
        raise TypeError(f"an example is a {type(row).__name__}, not a dict")
    return json.dumps(row)
