"""Reasoning that stands folded away in HTML, and folds that are parts of an answer."""

import pytest

from proctor.values.reasoning.separate import separate_reasoning
from proctor.values.reasoning.separated_text import SeparatedText


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        (
            "<details><summary>Reasoning</summary>Is it red? No.</details>Blue",
            SeparatedText("Is it red? No.", "Blue"),
        ),
        (
            '<details type="reasoning" open>\n<summary>Thought for 3 s</summary>\n> Red?</details>\nBlue',
            SeparatedText("> Red?", "Blue"),
        ),
        (
            '<details type="reasoning" open><div>Red?</div><summary>Thought</summary></details>\n\nBlue',
            SeparatedText("<div>Red?</div><summary>Thought</summary>", "Blue"),
        ),
        (
            "<details>\n<summary>💭 <b>Thinking process</b></summary>\nRed?\n</details>\n\nBlue",
            SeparatedText("Red?", "Blue"),
        ),
        (
            '<details class="model-thoughts"><summary>…</summary>Red?</details>Blue',
            SeparatedText("Red?", "Blue"),
        ),
        ("<details><summary>思考过程</summary>是红色吗？</details>蓝色", SeparatedText("是红色吗？", "蓝色")),
        (
            "Blue\n\n<details><summary>Show reasoning</summary>Red? No.</details>\n\nAsk me more.",
            SeparatedText("Red? No.", "Blue\n\n\n\n\nAsk me more."),
        ),
        (
            "<details><summary>Thoughts</summary>A <details>fold</details> is red.</details>Blue",
            SeparatedText("A <details>fold</details> is red.", "Blue"),
        ),
        (
            "<details><summary>Thoughts</summary>Or <details> then? Red.</details>Blue",
            SeparatedText("Or <details> then? Red.", "Blue"),
        ),
    ],
)
def test_the_answer_stands_outside_of_folded_reasoning(text: str, apart: SeparatedText) -> None:
    assert separate_reasoning(text) == apart


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>Reasoning</summary>It is red",
        '<details type="reasoning" done="false">\n<summary>Thinking…</summary>\n> It is red',
    ],
)
def test_folded_reasoning_that_never_ended_leaves_an_empty_answer(text: str) -> None:
    separated = separate_reasoning(text)
    assert (separated.answer, separated.is_ended) == ("", False)


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>Hint</summary>It is no red.</details>\nBlue",
        "<details><summary>Reasoning about colours is hard</summary>Blue</details>",
        "Fold it away by `<details><summary>Reasoning</summary>text</details>` in blue.",
        "```html\n<details><summary>Reasoning</summary>blue</details>\n```",
        "<html>\n<body>\n<details><summary>Thinking</summary>blue</details>\n</body>\n</html>",
        "Blue\n<details><summary>Reasoning</summary>It is",
        "The blue one.</details>",
    ],
)
def test_other_folds_are_parts_of_the_answer(text: str) -> None:
    assert separate_reasoning(text) == SeparatedText("", text)
