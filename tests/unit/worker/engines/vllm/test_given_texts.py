"""Which tokens of given texts are scored: of whole texts in windows, of an ending after its own context."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from proctor.values.outcome import Answer, ChoiceScore
from proctor.values.sample import ChatMessage, Prompt
from proctor.values.usage import NO_TOKENS, Timing
from services.worker.engines.engine import EngineResponse
from services.worker.engines.vllm.engine import choice_splits, is_whole_text, score_whole_text
from services.worker.engines.vllm.token_split import TokenSplit

if TYPE_CHECKING:
    from services.worker.engines.vllm.runtime import VllmRuntime

BOS = 1


@dataclass
class CharacterRuntime:
    """A model whose tokens are characters: each costs a tenth, and is the likeliest unless it is a space."""

    max_prompt_length: int = 5
    prefix_token: int = BOS
    scored: list[TokenSplit] = field(default_factory=list)

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        return [[ord(character) for character in text] for text in texts]

    async def score(self, splits: Sequence[TokenSplit]) -> EngineResponse:
        self.scored += splits
        counts = [len(each.continuation) for each in splits]
        are_greedy = [ord(" ") not in each.continuation for each in splits]
        scores = tuple(
            ChoiceScore(-0.1 * count, is_greedy, count)
            for count, is_greedy in zip(counts, are_greedy, strict=True)
        )
        return EngineResponse(Answer(choices=scores), NO_TOKENS, Timing(total_seconds=1.0))


async def whole(text: str, runtime: CharacterRuntime) -> ChoiceScore:
    response = await score_whole_text(cast("VllmRuntime", runtime), text)
    [score] = response.answer.choices
    return score


async def test_a_whole_text_is_the_sum_of_its_windows() -> None:
    runtime = CharacterRuntime()
    score = await whole("abcd efgh", runtime)
    assert score.logprob == pytest.approx(-0.9)
    assert (score.is_greedy, score.token_count) == (False, 9)
    assert [len(each.ids) for each in runtime.scored] == [5, 5, 5]
    assert runtime.scored[0].context == (BOS,)
    assert (await whole("abcdefgh", CharacterRuntime())).is_greedy


async def test_a_text_without_tokens_is_certain_and_asks_nothing() -> None:
    runtime = CharacterRuntime()
    assert await whole("", runtime) == ChoiceScore(0.0, is_greedy=True)
    assert runtime.scored == []


def test_a_whole_text_is_one_choice_after_nothing() -> None:
    assert is_whole_text(Prompt(""), ["text"], "")
    assert is_whole_text(Prompt(messages=(ChatMessage("user", ""),)), ["text"], "")
    assert not is_whole_text(Prompt("So:"), [" text"], "")
    assert not is_whole_text(Prompt(""), ["a text", "b text"], "")
    assert not is_whole_text(Prompt(""), ["a text"], " text")


async def test_an_ending_follows_the_rest_of_each_choice() -> None:
    runtime = cast("VllmRuntime", CharacterRuntime())
    first, second = await choice_splits(runtime, Prompt("x"), ["a!", "bc!"], "!")
    assert (first.context, first.continuation) == ((ord("x"), ord("a")), (ord("!"),))
    assert (second.context, second.continuation) == ((ord("x"), ord("b"), ord("c")), (ord("!"),))
