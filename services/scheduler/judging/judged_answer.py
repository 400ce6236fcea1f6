"""An answer that is judged, and the sample that asks for a verdict on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from proctor.values.judging.scale import FIRST, SECOND, Scale
from proctor.values.sample import ChatMessage, Prompt, Target
from services.scheduler.judging.errors import NoTarget
from services.scheduler.judging.judge_prompt import JudgePrompt, verdict_schema
from services.scheduler.suites.errors import InvalidRow
from services.scheduler.suites.rendering.sample import RenderedSample, digest_of, netstrings
from services.scheduler.suites.templates.errors import RowFault

DIGEST_FORMAT = "proctor-verdict-1"


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer of a run with what it was asked. `answer` is without reasoning; `target` "" for none.

    `digest` is that of its sample; `other` is what the answer is compared with, if anything: what another run
    answered, or the target.
    """

    sample: int
    rollout: int
    doc_id: int
    question: str
    target: str
    answer: str
    digest: bytes = b""
    other: str | None = None

    @property
    def row_id(self) -> str:
        return f"{self.sample}.{self.rollout}"


@dataclass(frozen=True, slots=True)
class AskVerdict:
    """Makes the samples of a judging run. `has_clusters`: a judged sample has several answers."""

    prompt: JudgePrompt
    scale: Scale
    is_constrained: bool = False
    has_clusters: bool = False

    def samples(self, position: int, judged: JudgedAnswer) -> Sequence[RenderedSample]:
        """One, or of a pair two: judges prefer one place, so each answer is shown in both.

        Raises `NoTarget`, and `InvalidRow` for an answer that the template cannot be rendered with. A digest
        covers these netstrings: the format's name, the prompt's name and version, the text that is asked, the
        parameters, and of a pair the place of the judged answer.
        """
        if self.prompt.needs_target and not judged.target.strip():
            raise NoTarget(sample=judged.sample, prompt=self.prompt.name)
        asked = {"question": judged.question, "target": judged.target}
        if judged.other is None:
            return [self._sample(position, judged, asked | {"answer": judged.answer})]
        orders = ((FIRST, judged.answer, judged.other), (SECOND, judged.other, judged.answer))
        return [
            self._sample(position + at, judged, asked | {"first": first, "second": second}, place)
            for at, (place, first, second) in enumerate(orders)
        ]

    def _sample(
        self, position: int, judged: JudgedAnswer, texts: Mapping[str, str], place: str = ""
    ) -> RenderedSample:
        try:
            text = self.prompt.render(texts, self.scale, is_constrained=self.is_constrained)
            _refuse_unstorable(text)
        except RowFault as fault:
            raise InvalidRow(self.prompt.name, judged.sample, fault.problem, fault.field) from fault
        params = orjson.dumps(_params(self.scale)) if self.is_constrained else b""
        names = (DIGEST_FORMAT, self.prompt.name, self.prompt.version)
        places = (place.encode(),) if place else ()
        encoded = netstrings((*(name.encode() for name in names), text.encode(), params, *places))
        document = orjson.dumps({"sample": judged.sample, "rollout": judged.rollout, **texts})
        return RenderedSample(
            position=position,
            doc_id=judged.doc_id,
            prompt=Prompt(messages=(ChatMessage("user", text),)),
            target=Target(texts=(place,)) if place else Target(),
            digest=digest_of(encoded),
            cluster=str(judged.sample) if place or self.has_clusters else "",
            doc_json=document.decode(),
            row_id=f"{judged.row_id}.{place}" if place else judged.row_id,
            params_json=params.decode(),
            size_bytes=len(encoded),
            stored_bytes=len(encoded) + len(document),
        )


def _refuse_unstorable(text: str) -> None:
    """A template can write what the answer does not have. Raises `RowFault`."""
    if "\0" in text:
        raise RowFault("its text holds a NUL character, which cannot be stored")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RowFault("its text is not valid Unicode (a lone surrogate)") from error


def _params(scale: Scale) -> Mapping[str, object]:
    schema = {"name": "verdict", "strict": True, "schema": verdict_schema(scale)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
