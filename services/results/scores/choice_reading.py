"""Which choice an answer in words names. A wrong label is far worse than none: what is not plain is unread.

Of the answer itself (`final_answer`) only these forms are read, with X a choice, its letter, or both as in
"(B) London", whatever its case, markup and quotes:

1. X is the whole answer, or the whole first or last line.
2. A sentence says so, and nothing else: "So the answer is X", "Answer: X", "I choose X", "X is correct"; or
   the answer is no more than "It is X"; or a formula is boxed.
3. The answer begins with X and explains it: "X. The ...", "X because ...", "Yes, the ...".

All that is read in this way must be one and the same choice. What follows it may explain it: where that takes
it back, doubts it, passes a verdict on it, or names another choice other than in passing, nothing is read.

A letter stands for the choice that is that letter or begins with it ("B. Paris"), else for the choice in that
place. Where choices are only letters, what they stand for may follow: "B. 42".
"""

import re
from collections.abc import Sequence

from services.results.scores.choice_claims import claims_of
from services.results.scores.choice_doubts import is_explanation, is_taken_back
from services.results.scores.choice_options import Options, options_of
from services.results.scores.final_answer import final_answer
from services.results.scores.wording import unmarked

# A model that has lost itself repeats the same for ever.
_LONGEST_ANSWER = 20_000
_SPACES = re.compile(r"[ \t]+")
_ON_THE_NEXT_LINE = re.compile(r":[ \t]*\n\s*")


def named_choice(text: str, choices: Sequence[str]) -> int | None:
    answer = final_answer(text)
    said = {text.strip(), answer}
    exact = [label for label, choice in enumerate(choices) if choice.strip() in said]
    if exact or not answer:
        return exact[0] if len(exact) == 1 else None
    options = options_of(choices)
    if options is None or len(answer) > _LONGEST_ANSWER:
        return None
    lines = _SPACES.sub(" ", unmarked(answer)).strip()
    return _read(_ON_THE_NEXT_LINE.sub(": ", lines), options)


def _read(answer: str, options: Options) -> int | None:
    claims = claims_of(answer, options)
    labels = {claim.label for claim in claims}
    if len(labels) != 1:
        return None
    (label,), rest = labels, answer[claims[-1].end :]
    if label is None or is_taken_back(rest, label, options):
        return None
    is_stated = any(claim.is_stated for claim in claims)
    return label if is_stated or is_explanation(rest, label, options) else None
