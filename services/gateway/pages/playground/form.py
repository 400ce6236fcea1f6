"""The input of the playground: a prompt, models and parameters, as a data set of one row and an order."""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import ImmutableMultiDict

from services.common.requests.request_fields import hidden_problem
from services.gateway.http.errors import FormFaults
from services.gateway.pages.orders.form import ALSO, OrderForm

MAX_MODELS = 4
# Parameters of the order that the page has fields for.
PARAMETERS = ("temperature", "max_tokens", "seed")
_FIELDS = ("system", "prompt", "models", "request_id", *PARAMETERS)
_SEPARATORS = re.compile(r"[\s,]+")
_NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class PlaygroundForm:
    """All that was entered, as text. `models` are separated by commas or lines."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: ImmutableMultiDict[str, Any]) -> "PlaygroundForm":
        """Reads a form; files and unknown names are ignored."""
        texts = {name: value for name, value in given.items() if isinstance(value, str) and name in _FIELDS}
        return cls({name: value.replace("\r\n", "\n") for name, value in texts.items()})

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    @property
    def models(self) -> Sequence[str]:
        """Each once, in their order."""
        return [*dict.fromkeys(filter(None, _SEPARATORS.split(self.get("models"))))]

    @property
    def name(self) -> str:
        """Of the file of its data set: the first words of the prompt."""
        beginning = self.get("prompt")[: 10 * _NAME_CHARACTERS]
        shown = "".join(" " if hidden_problem("", one) else one for one in beginning)
        words = " ".join(shown.split())
        return f"Playground: {words[:_NAME_CHARACTERS]}{'…' if len(words) > _NAME_CHARACTERS else ''}"

    def check(self) -> None:
        """Raises FormFaults."""
        faults = {}
        if not self.get("prompt").strip():
            faults["prompt"] = "Write a prompt."
        if not self.models:
            faults["models"] = "Choose a model, or write one as provider/name."
        elif len(self.models) > MAX_MODELS:
            faults["models"] = f"At most {MAX_MODELS} models answer side by side."
        elif unnamed := [model for model in self.models if "/" not in model.strip("/")]:
            faults["models"] = f"Write {unnamed[0]} as provider/name."
        if faults:
            raise FormFaults(faults)

    def row(self, target: str | None = None) -> bytes:
        """The row of its data set, as JSONL; `target` is an answer that is kept as the expected one.

        Without a system message the row is a plain prompt, which base models take too.
        """
        row: dict[str, object] = {"prompt": self.get("prompt")}
        if system := self.get("system").strip():
            messages = [("system", system), ("user", self.get("prompt"))]
            row = {"messages": [{"role": role, "content": content} for role, content in messages]}
        if target is not None:
            row["target"] = target
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"

    def id_of(self, *of: object) -> str:
        """A request id: the same for a form that is sent twice, and another one once `of` it was changed."""
        rendered = self.get("request_id")
        try:
            return str(uuid.uuid5(uuid.UUID(rendered), json.dumps(of)))
        except ValueError:
            return str(uuid.uuid4())

    def order(self, dataset_id: str) -> OrderForm:
        """The order of all of its models over the data set."""
        first, *others = self.models
        values = {"model": first, ALSO: ", ".join(others), "benchmark": f"dataset:{dataset_id}"}
        given = {name: self.get(name).strip() for name in PARAMETERS if self.get(name).strip()}
        return OrderForm({**values, **given, "name": self.name, "tags": "playground"}, {})


def prompt_of(row: Mapping[str, Any]) -> Mapping[str, str]:
    """The fields of the form that a row was made of; empty for a row of another form."""
    match row:
        case {
            "messages": [{"role": "system", "content": str(system)}, {"role": "user", "content": str(prompt)}]
        }:
            return {"system": system, "prompt": prompt}
        case {"prompt": str(prompt)}:
            return {"system": "", "prompt": prompt}
        case _:
            return {}
