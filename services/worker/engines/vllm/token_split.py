"""Splits context and continuation in tokens, as in lm-evaluation-harness."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

EncodeAll = Callable[[list[str]], list[list[int]]]


@dataclass(frozen=True, slots=True)
class TokenSplit:
    context: tuple[int, ...]
    continuation: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return self.context + self.continuation


def split_tokens(
    encode_all: EncodeAll, context: str, continuations: Sequence[str], prefix_token: int | None
) -> tuple[TokenSplit, ...]:
    """Encodes context and continuation together and cuts where the encoding of the context alone ends.

    White space at the end of the context belongs to the continuation. The tokenizer's prefix token replaces
    an empty context.
    """
    bare_context = context.rstrip()
    # Together: a tokenizer may join the end of the context with the beginning of a choice.
    wholes = [context + continuation for continuation in continuations]
    if not bare_context:
        return tuple(_after_prefix(ids, prefix_token) for ids in encode_all(wholes))
    context_ids, *whole_ids = encode_all([bare_context, *wholes])
    return tuple(TokenSplit(tuple(context_ids), tuple(ids[len(context_ids) :])) for ids in whole_ids)


def _after_prefix(ids: list[int], prefix_token: int | None) -> TokenSplit:
    """Adds the prefix token, unless the tokenizer has; without one the first token becomes the context."""
    if prefix_token is None or ids[:1] == [prefix_token]:
        return TokenSplit(tuple(ids[:1]), tuple(ids[1:]))
    return TokenSplit((prefix_token,), tuple(ids))


def rolling_windows(split: TokenSplit, max_tokens: int) -> tuple[TokenSplit, ...]:
    """The whole text after its prefix token, in windows of at most `max_tokens`, as in lm-evaluation-harness.

    Each token is scored once. A full window begins with one token of context, and the last one, which scores
    what is left, with as many as there is room for.
    """
    ids, room = split.continuation, max_tokens - 1
    windows = [TokenSplit(split.context, ids[:room])] if ids else []
    for start in range(room, len(ids), room):
        end = min(start + room, len(ids))
        windows.append(TokenSplit(ids[end - max_tokens : start], ids[start:end]))
    return tuple(windows)


def cut_left(split: TokenSplit, max_tokens: int) -> TokenSplit:
    """The last `max_tokens` tokens, with at least one token of context for the scores to follow."""
    ids = split.ids[-max_tokens:]
    # The first token has no score, since nothing comes before it.
    kept = min(len(split.continuation), len(ids) - 1)
    return TokenSplit(ids[: len(ids) - kept], ids[len(ids) - kept :])


def is_one_token_each(splits: Sequence[TokenSplit]) -> bool:
    """Whether one request can score all choices: each is a single token after the same context."""
    return all(len(split.continuation) == 1 and split.context == splits[0].context for split in splits)
