"""A process of scores that does what an answer says, as one that a hostile answer has taken over."""

import ctypes
import os
import pickle
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from proctor.values.outcome import Answer
from services.common.processes.plain_values import to_bytes
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.scoring.processes import scorer_process
from services.results.scoring.processes.scorer_process import BoundedScorer
from services.results.scoring.score import Score, ScoringTarget
from services.results.scoring.score_answer import score_answer

PROGRAM = "tests.fakes.scoring.obeying_scorer"
reply_to = scorer_process.reply


def _fail() -> NoReturn:
    raise ZeroDivisionError("no score")


DEEDS: Mapping[str, Callable[[], object]] = {
    "fail": _fail,
    "exit": lambda: os._exit(1),
    "read no memory": lambda: ctypes.string_at(0),
    "abort": os.abort,
    # No timer of Python ends it.
    "compute": lambda: sum(range(10**12)),
    "sleep 3600": lambda: time.sleep(3600),  # noqa: TID251  # no loop runs here
    "sleep 0.4": lambda: time.sleep(0.4),  # noqa: TID251  # as above
}
REPLIES = {
    "reply no score": to_bytes([{"prediction": 1}]),
    "reply too many": to_bytes([Score("")] * 4),
    "reply nothing": to_bytes([]),
    "reply a pickle": pickle.dumps([Score("")]),
}


def _obey(
    scoring: CompiledScoring,
    target: ScoringTarget,
    answer: Answer,
    filtered: Mapping[str, object] | None = None,
) -> Score:
    if answer.text in DEEDS:
        DEEDS[answer.text]()
    return score_answer(scoring, target, answer, filtered)


def _reply(scorer: BoundedScorer, request: bytes) -> bytes:
    wanted = (reply for text, reply in REPLIES.items() if text.encode() in request)
    return next(wanted, None) or reply_to(scorer, request)


if __name__ == "__main__":
    # The name by which that module calls it.
    vars(scorer_process)["score_answer"] = _obey
    scorer_process.reply = _reply
    scorer_process.main()
