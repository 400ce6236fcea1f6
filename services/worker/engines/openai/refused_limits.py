"""Servers limit the answer to a chat by the older field, the newer one, or both: their refusals say which."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from proctor.values.providers.pool import MaxTokensField
from services.worker.engines.errors import RequestRefused

# A server has few models; the rows of one run name one.
_MAX_MODELS = 1024
# Letters of codes, as `error_words` gives them.
_UNKNOWN_FIELD = frozenset({"unsupportedparameter", "unknownparameter", "unrecognizedparameter"})
_NOT_TAKEN = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|no longer|incompatible|instead"
    r"|(not|n't|cannot) (\w+ ){0,3}(support|taken?\b|accept|allow|permit|recogni[sz]e|available)"
    r"|(not|n't|cannot) (\w+ ){0,3}(known|valid|compatible|use)"
    r"|extra (inputs|fields)|(please|must|should|have to) use",
    re.IGNORECASE,
)
# Another value would be taken, so another field would not help.
_WRONG_VALUE = re.compile(
    r"unsupported value|too (large|small|high|low|many|long)|at (most|least)|exceed|between|range\b"
    r"|(less|greater|more|higher|lower) than|positive|minimum|maximum (value|of|allowed|number|output)"
    r"|must be (an? |[<>=≤≥\d])|at the same time",
    re.IGNORECASE,
)


def refused_limits(parameter: str, words: AbstractSet[str], message: str) -> frozenset[str]:
    """The fields that the error names as not taken, by its `parameter`, its words or its sentence."""
    named = frozenset(
        each.value for each in MaxTokensField if each == parameter or re.search(rf"\b{each}\b", message)
    )
    if not named or _WRONG_VALUE.search(message):
        return frozenset()
    return named if words & _UNKNOWN_FIELD or _NOT_TAKEN.search(message) else frozenset()


@dataclass(slots=True)
class RefusedLimits:
    """The fields that a server refused, for each of its models."""

    _by_model: dict[str, set[MaxTokensField]] = field(default_factory=dict)

    def field_for(self, model: str, wanted: MaxTokensField) -> MaxTokensField:
        """The wanted field, or the other one where the server refused only the wanted one."""
        return wanted.other if self._by_model.get(model) == {wanted} else wanted

    def learn(self, model: str, sent: MaxTokensField, refusal: RequestRefused) -> bool:
        """Whether the refusal is of the field that was sent, and the other one is worth a try."""
        if sent not in refusal.refused_fields:
            return False
        if len(self._by_model) >= _MAX_MODELS:
            self._by_model.clear()
        refused = self._by_model.setdefault(model, set())
        refused.add(sent)
        return sent.other not in refused
