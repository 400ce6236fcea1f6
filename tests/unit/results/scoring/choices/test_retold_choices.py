"""Answers that tell a choice in another form of its words."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
TASKS = (
    "It cleans the water of the lake",
    "It stores the heat of the day",
    "It guides ships into the harbour",
    "It does not store the heat of the day",
)
DEEDS = (
    "The town built a bridge",
    "The town closed its school",
    "The town sold its forest",
    "The mayor left",
)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("to clean the water of the lake", 0),
        ("Cleaning the water of the lake", 0),
        ("The tower guides ships into the harbour.", 2),
        ("guiding ships into harbours", 2),
        ("Rather than cleaning the water of the lake, it guides ships into the harbour.", 2),
        ("It stores the day's heat.", None),
        ("It stored heat of the day", 1),
        ("It guides ships.", None),
        ("It cleans the water of the lake and guides ships into the harbour.", None),
        ("It can hardly clean the water of the lake.", None),
        ("People think that lighthouses clean the water of the lake.", None),
        ("Does it clean the water of the lake?", None),
        ("If it cleans the water of the lake", None),
        ("It guides ships into the harbour (B).", None),
    ],
)
def test_the_words_of_one_choice_in_their_order_name_it(answer: str, label: int | None) -> None:
    assert named_choice(answer, LETTERS, TASKS) == label


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("They built a bridge.", 0),
        ("The town closed the school", 1),
        ("The school closed the town.", None),
        ("They built it.", None),
    ],
)
def test_what_all_choices_share_may_be_left_out(answer: str, label: int | None) -> None:
    assert named_choice(answer, DEEDS) == label


@pytest.mark.parametrize("answer", ["-3", "3 %", "4 or 3", "30"])
def test_numbers_are_retold_by_nothing(answer: str) -> None:
    assert named_choice(answer, ("3", "4")) is None
