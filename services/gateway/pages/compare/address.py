"""The runs or models of a comparison, read from and written to the address of the page."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from proctor.v1 import comparison_service_pb2
from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from services.gateway.pages.addresses import address

SHOWN = ("", "gained", "lost", "all")
_Text = Annotated[str, Field(max_length=512)]


@dataclass(frozen=True, slots=True)
class CompareAddress:
    """Runs, or models by their latest completed run of a benchmark. The first one is the reference run.

    `task`, `show`, `against` and `after` choose samples: of a task, which of those that differ, against which
    of the others (its index), and from which page on.
    """

    runs: Sequence[str] = ()
    models: Sequence[str] = ()
    suite: str = ""
    metric: str = ""
    is_forced: bool = False
    task: str = ""
    show: str = ""
    against: int = 1
    after: str = ""

    @property
    def chosen(self) -> Sequence[str]:
        return self.runs or self.models

    @property
    def is_complete(self) -> bool:
        """Whether there is something to compare; otherwise the page asks what."""
        is_enough = MIN_COMPARED <= len(self.chosen) <= MAX_COMPARED
        return is_enough and bool(self.runs or self.suite) and all(_is_id(run) for run in self.runs)

    def with_first(self, index: int) -> Self:
        """The same comparison with another reference run."""
        first = self.chosen[index]
        ordered = [first, *(each for each in self.chosen if each != first)]
        runs, models = (ordered, self.models) if self.runs else (self.runs, ordered)
        return replace(self, runs=runs, models=models, show="", against=1, after="")

    def with_task(self, tasks: Sequence[str]) -> Self:
        """Samples are listed by task: of several the first one."""
        return self if self.task in tasks or not tasks else replace(self, task=tasks[0])

    def export(self, form: str) -> str:
        """The samples that are shown, to the last one, as a file."""
        return self.link().replace("/compare", f"/compare/export.{form}", 1)

    def link(self, **changes: object) -> str:
        """The address with other parameters, without empty ones; samples from their first page."""
        return str(replace(self, **{"after": "", **changes}))  # type: ignore[arg-type]  # fields by name

    def __str__(self) -> str:
        named = [("run", each) for each in self.runs] + [("model", each) for each in self.models]
        rest: Mapping[str, str] = {
            "suite": "" if self.runs else self.suite,
            "metric": self.metric,
            "force": "1" if self.is_forced else "",
            "task": self.task,
            "show": self.show,
            "against": str(self.against) if self.against > 1 else "",
            "after": self.after,
        }
        return address("/compare", [*named, *rest.items()])

    def to_proto(self) -> comparison_service_pb2.CompareRunsRequest:
        return comparison_service_pb2.CompareRunsRequest(
            run_ids=self.runs,
            models=self.models,
            benchmark="" if self.runs else self.suite,
            metrics=[self.metric] if self.metric else [],
            is_forced=self.is_forced,
        )


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


class CompareQuery(BaseModel):
    """The parameters of the page, as its address has them."""

    run: list[str] = []
    model: list[str] = []
    suite: _Text = ""
    metric: _Text = ""
    force: _Text = ""
    task: _Text = ""
    show: _Text = ""
    against: _Text = ""
    after: _Text = ""


async def compare_address(query: Annotated[CompareQuery, Query()]) -> CompareAddress:
    """A dependency of handlers. What cannot be read is ignored, so that old links stay valid."""
    runs = [each.strip().lower() for each in dict.fromkeys(query.run) if each.strip()]
    models = [] if runs else [each.strip() for each in dict.fromkeys(query.model) if each.strip()]
    compared = len(runs or models)
    against = query.against
    index = int(against) if against.isascii() and against.isdecimal() and len(against) < 2 else 1
    return CompareAddress(
        runs=runs,
        models=models,
        suite=query.suite,
        metric=query.metric.strip(),
        is_forced=query.force == "1",
        task=query.task,
        show=query.show if query.show in SHOWN else "",
        against=index if 0 < index < max(compared, MIN_COMPARED) else 1,
        after=query.after,
    )


AddressOf = Annotated[CompareAddress, Depends(compare_address)]
