"""Everyday wordings of a choice whose text is known: each is read, and what only looks like one is not."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
CITIES = ("London", "Paris", "Berlin", "Rome")


@pytest.mark.parametrize(
    "text",
    [
        "That would be B.",
        "That's B, Paris.",
        "B it is.",
        "Definitely B.",
        "Clearly B.",
        "I'm 95% sure the answer is B.",
        "🎯 **Answer: B**",
        "Paris, option B.",
        "The capital of France is **Paris**, which is option **B**.",
        '{"choice": "B", "text": "Paris"}',
        "{'answer': 'B'}",
        "The letter of the correct answer is B.",
        "Among the options, B (Paris) is the correct one.",
        "The correct answer to the multiple-choice question is B.",
        "Prediction: B",
        "Solution: B",
        "Result: B",
        "The answer, then, is B.",
        "The answer, of course, is B.",
        "本题选B",
        "正解はB（パリ）です。",
        "Daher ist Option B richtig.",
        "Richtig ist B.",
        "Câu trả lời đúng là B.",
        "Sagot: B",
        "Správná odpověď je B.",
        "Η σωστή απάντηση είναι η B.",
        "Правильна відповідь: B",
        "התשובה הנכונה היא B.",
        "সঠিক উত্তর হল B।",
        "Paris is the capital of France, making B the correct answer.",
        "I vote B.",
        "Let me pick B.",
        "Going with B.",
        "Correct: B",
        "The correct one is B.",
        "Option B, Paris, is the correct answer.",
        "B, Paris, is the correct answer.",
        "The correct answer is Paris, which is option B.",
        "Q: What is the capital of France?\nA: B",
        "B\n\nB",
        "B\nB\nB",
        "**Answer: B**\n\n---\n\n### Why?\n- Paris is in France.\n- The others are not.",
        "Without a doubt, B.",
        "Of course, it's B.",
        "Here's the answer: B",
        "Here is my answer: (B)",
        "The answer I choose is B.",
        "Final decision: B",
        "∴ B",
        "∴ The answer is B.",
        "=> B",
        "-> B",
        "\\textbf{Answer: B}",
        "The one that fits best is B.",
        "Select B.",
        "Choose B.",
        "Pick (B).",
        "B is most likely correct.",
        "Probably B.",
        "The answer is probably B.",
        "The answer that makes the most sense is B.",
        "答案是B，因为巴黎是法国的首都。",
        "选B",
        "选择B。",
        "B选项正确。",
        "因此选择B选项。",
        "正解はBの「パリ」です。",
        "La respuesta es B, porque París es la capital de Francia.",
        "La respuesta correcta es: **B) París**",
        "Elijo la opción B.",
        "La réponse est B, car Paris est la capitale de la France.",
        "C'est la réponse B.",
        "Die Antwort ist B, da Paris die Hauptstadt Frankreichs ist.",
        "Lösung: B",
        "A resposta é B, pois Paris é a capital da França.",
        "Gabarito: B",
    ],
)
def test_a_choice_in_everyday_words_is_read(text: str) -> None:
    assert named_choice(text, LETTERS, CITIES) == 1


@pytest.mark.parametrize(
    "text",
    [
        "At first I thought A, but the correct answer is C.",
        "Most people would say B, but the correct answer is C.",
    ],
)
def test_what_others_say_does_not_hide_the_answer_behind_but(text: str) -> None:
    assert named_choice(text, LETTERS, CITIES) == 2


@pytest.mark.parametrize(
    "text",
    [
        "Result: A is false.",
        "La respuesta es A o B.",
        "The answer is a car.",
        "Solution: A car travels 5 km.",
        "Solution: A is not the capital and B is.",
        "Solution: Let us look at each city in turn.",
        "B it is not.",
        "B 👎",
        "B ❌",
        "A 🤔",
        "Clearly A is wrong.",
        "That would be B if the question were about England.",
        "That's a good question.",
        "That is a mistake.",
        "Ist Option B richtig?",
        "Definitely not B.",
        "Definitely B or C.",
        "Prediction: A, B",
        "Some say the answer is A, but others say it is B.",
        "You may think the answer is A, but is it?",
        "I would have said the answer is A, but I am not sure.",
        "London, which is option B.",
        '{"choice": "B", "text": "London"}',
        "B (London) is the correct one.",
        "Das ist Option B nicht.",
        "Richtig ist nicht B.",
        "The answer, then, is not B.",
        "The answer is unclear: B or C.",
        "My friend chose B.",
        "Which option is correct? A, B, C or D?",
        "The first option, A, is about England. The second, B, is about France.",
        "The options are A) London B) Paris C) Berlin D) Rome.",
        "I'm sorry, but I can't help with that.",
        "A or B? Hard to say.",
        "Answer: A/B",
    ],
)
def test_what_only_looks_like_a_choice_is_unread(text: str) -> None:
    assert named_choice(text, LETTERS, CITIES) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("This is a negative review.", 0),
        ("The review has a negative tone.", 0),
        ("This review expresses a positive sentiment.", 1),
        ("It is positive because he liked it.", 1),
        ("This is not a negative review.", None),
        ("This is a mixed review, negative and positive.", None),
        ("The critics have a negative opinion.", None),
        ("It is positive because I do not know.", None),
    ],
)
def test_a_sentence_that_classifies_is_read(text: str, label: int | None) -> None:
    assert named_choice(text, ("negative", "positive")) == label
