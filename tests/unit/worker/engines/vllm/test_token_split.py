"""The joint tokenisation: what lm-evaluation-harness does at the border of context and continuation."""

from services.worker.engines.vllm.token_split import (
    TokenSplit,
    cut_left,
    is_one_token_each,
    rolling_windows,
    split_tokens,
)

BOS = 1
# A merging tokenizer in small: the longest piece that fits is a token, else the character itself.
PIECES = {
    " yes": 1001,
    " no": 1002,
    "Answer": 1003,
    ":": 1004,
    ": y": 1005,
    " ": 1006,
    "yes": 1007,
    "\n": 1008,
}


def encode(text: str) -> list[int]:
    ids = []
    while text:
        piece = max((each for each in PIECES if text.startswith(each)), key=len, default=text[0])
        ids.append(PIECES[piece] if piece in PIECES else ord(piece))
        text = text[len(piece) :]
    return ids


def encode_all(texts: list[str]) -> list[list[int]]:
    return [encode(text) for text in texts]


def encode_all_after_bos(texts: list[str]) -> list[list[int]]:
    return [[BOS, *encode(text)] for text in texts]


def test_continuation_is_what_follows_the_contexts_own_encoding() -> None:
    yes, no = split_tokens(encode_all, "Q\nAnswer", [": no", " yes"], BOS)
    assert yes == TokenSplit((81, 1008, 1003), (1004, 1002))
    assert no == TokenSplit((81, 1008, 1003), (1001,))


def test_trailing_space_of_the_context_belongs_to_the_continuation() -> None:
    (split,) = split_tokens(encode_all, "Answer ", ["yes"], BOS)
    assert split == TokenSplit((1003,), (1001,))


def test_token_across_the_border_keeps_the_contexts_own_encoding() -> None:
    (split,) = split_tokens(encode_all, "Answer:", [" y?"], BOS)
    assert split.context == (1003, 1004)
    assert split.continuation == (ord("?"),)


def test_empty_context_becomes_the_prefix_token() -> None:
    assert split_tokens(encode_all, "", [" yes"], BOS) == (TokenSplit((BOS,), (1001,)),)


def test_prefix_token_is_not_doubled_where_the_tokenizer_sets_it() -> None:
    assert split_tokens(encode_all_after_bos, "", [" yes"], BOS) == (TokenSplit((BOS,), (1001,)),)


def test_context_of_white_space_only_counts_as_empty() -> None:
    assert split_tokens(encode_all, " ", ["yes"], BOS) == (TokenSplit((BOS,), (1001,)),)


def test_without_a_prefix_token_the_first_token_is_the_context() -> None:
    assert split_tokens(encode_all, "", [" yes\n"], None) == (TokenSplit((1001,), (1008,)),)


def test_cutting_left_keeps_the_continuation() -> None:
    assert cut_left(TokenSplit((1, 2, 3), (4, 5)), 3) == TokenSplit((3,), (4, 5))


def test_continuation_longer_than_the_limit_keeps_one_token_before_it() -> None:
    assert cut_left(TokenSplit((1, 2), (3, 4, 5)), 2) == TokenSplit((4,), (5,))


def test_one_request_serves_single_tokens_after_the_same_context() -> None:
    assert is_one_token_each([TokenSplit((1,), (2,)), TokenSplit((1,), (3,))])
    assert not is_one_token_each([TokenSplit((1,), (2,)), TokenSplit((1,), (3, 4))])
    assert not is_one_token_each([TokenSplit((1,), (2,)), TokenSplit((9,), (3,))])


def test_windows_of_a_text_score_each_token_once_after_as_much_as_there_is_room_for() -> None:
    """As `get_rolling_token_windows` and `make_disjoint_window` of lm-evaluation-harness cut it."""
    assert rolling_windows(TokenSplit((BOS,), tuple(range(11, 20))), 5) == (
        TokenSplit((BOS,), (11, 12, 13, 14)),
        TokenSplit((14,), (15, 16, 17, 18)),
        TokenSplit((15, 16, 17, 18), (19,)),
    )
    assert rolling_windows(TokenSplit((BOS,), (11, 12)), 5) == (TokenSplit((BOS,), (11, 12)),)


def test_a_text_without_tokens_has_no_window() -> None:
    assert rolling_windows(TokenSplit((BOS,), ()), 5) == ()
