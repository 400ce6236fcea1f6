"""Stop sequences that a server does not take."""

import pytest

from proctor.values.outcome import Answer
from services.worker.engines.http.provider_engine import cut_at_stops


@pytest.mark.parametrize(
    ("stops", "text", "finish_reason"),
    [
        ((), "One.\n\nTwo. Q: Three", "length"),
        (("A:",), "One.\n\nTwo. Q: Three", "length"),
        (("Q:",), "One.\n\nTwo. ", "stop"),
        (("Q:", "\n\n"), "One.", "stop"),
        (("One",), "", "stop"),
        (("",), "One.\n\nTwo. Q: Three", "length"),
    ],
)
def test_answer_ends_before_the_first_of_them(stops: tuple[str, ...], text: str, finish_reason: str) -> None:
    cut = cut_at_stops(Answer("One.\n\nTwo. Q: Three", "length"), stops)
    assert (cut.text, cut.finish_reason) == (text, finish_reason)
