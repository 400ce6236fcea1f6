"""An answer in words names a choice, or none: what is not clear is unparsed, never a default."""

import pytest

from services.results.scoring.choices.reading import named_choice

CITIES = ("Paris", "London", "Rome", "Berlin")
LETTERS = ("A", "B", "C", "D")
ENTAILMENT = ("entailment", "not entailment")
RELATIONS = ("entailment", "neutral", "contradiction")
NO_YES = ("no", "yes")
TRUTH = ("True", "False", "Neither")
DIGITS = ("1", "2", "3", "4")

Choices = tuple[str, ...]


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (CITIES, "Paris", 0),
        (CITIES, " paris.\n", 0),
        (CITIES, "**London**", 1),
        (CITIES, '"Rome"', 2),
        (CITIES, "“Paris”", 0),
        (CITIES, "- Paris", 0),
        (CITIES, "a", 0),
        (CITIES, "d.", 3),
        (CITIES, "`B`", 1),
        (LETTERS, "(b)", 1),
        (ENTAILMENT, "Not entailment.", 1),
        (ENTAILMENT, "not_entailment", 1),
        (ENTAILMENT, "entailment", 0),
        (NO_YES, "No.", 0),
        (DIGITS, "2", 1),
        (("4", "-4"), "-4", 1),
        (("a", "A"), "A", 1),
        (("?", "!"), "?", 0),
        ((" a\nQuestion: b", " c"), " a\nQuestion: b", 0),
    ],
)
def test_the_whole_answer_may_be_a_choice_or_its_letter(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (CITIES, "The answer is (B).", 1),
        (CITIES, "The answer is 'Paris'.", 0),
        (CITIES, "Final answer: D", 3),
        (CITIES, "**Answer:** C", 2),
        (CITIES, "The correct option is **B) London**.", 1),
        (CITIES, "Option B is correct.", 1),
        (CITIES, "I would choose C because it is warm.", 2),
        (CITIES, "I'd go with Rome", 2),
        (CITIES, "The answer is A because it is so.", 0),
        (CITIES, "So it must be \\boxed{B}", 1),
        (CITIES, "So $\\boxed{\\text{Rome}}$.", 2),
        (ENTAILMENT, "The answer is not entailment", 1),
        (ENTAILMENT, "The label is: entailment", 0),
        (NO_YES, "The answer is: **Yes**", 1),
        (LETTERS, "The patient needs vitamin D. The answer is (A).", 0),
        (DIGITS, "The answer is 2.", 1),
        (("4", "40"), "The answer is 40", 1),
        (("4", "-4"), "The answer is -4.", 1),
        (("$5", "$15"), "The answer is $15", 1),
        (("1,000", "100"), "The answer is 1,000.", 0),
        (("dog", "dog house"), "The answer is dog house", 1),
    ],
)
def test_a_statement_names_the_choice(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


def test_several_statements_must_agree() -> None:
    assert named_choice("The answer is B. We know it well. Answer: London", CITIES) == 1
    assert named_choice("The answer is B. We know it well. Answer: Paris", CITIES) is None


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (CITIES, "London is in England.\nRome is in Italy.\n\nParis", 0),
        (CITIES, "Paris\n\nLondon is in England.", 0),
        (CITIES, "(C) Rome", 2),
        (CITIES, "C. Rome\nIt was built in many days.", 2),
        (LETTERS, "C. Paris", 2),
        (LETTERS, "B\n\nExplanation: A is wrong", 1),
        (LETTERS, "Option D", 3),
    ],
)
def test_the_first_or_the_last_line_may_be_a_choice(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (NO_YES, "Yes, because the passage says so.", 1),
        (NO_YES, "Yes – the passage says it clearly.", 1),
        (NO_YES, "No, it is not.", 0),
        (NO_YES, "No. There is no such thing.", 0),
        (RELATIONS, "Neutral. The premise does not say where he went.", 1),
        (RELATIONS, "neutral\n\nThe premise is no contradiction of it.", 1),
        (CITIES, "B. London is the capital of England.", 1),
        (CITIES, "**B) London**\n\nExplanation: It is in England, while Paris is in France.", 1),
        (CITIES, "The answer is B. Option A is wrong.", 1),
        (LETTERS, "(C) Rome", 2),
        (LETTERS, "The correct answer is C) 42.", 2),
    ],
)
def test_an_answer_may_begin_with_the_choice_and_explain_it(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (CITIES, "It is definitely Paris!", 0),
        (RELATIONS, "It's neutral.", 1),
        (TRUTH, "The statement is true.", 0),
        (("a dog", "a cat"), "It is a cat", 1),
        (RELATIONS, "The relation between the premise and the hypothesis is neutral.", 1),
        (CITIES, '{"answer": "B"}', 1),
        (CITIES, "<answer>London</answer>", 1),
    ],
)
def test_an_answer_may_say_no_more_than_its_choice(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (NO_YES, " yes\n\nQuestion: is the sky green?\nAnswer: no", 1),
        (NO_YES, "yes\nquestion: is z a y\nanswer: no", 1),
        (CITIES, "Rome\n\nHuman: And France?\n\nAssistant: The answer is Paris.", 2),
        (CITIES, "Rome<|im_end|>\n<|im_start|>user\nThe answer is Paris", 2),
        (CITIES, "The answer is Rome.\n\n### Question: What of France?\nParis", 2),
    ],
)
def test_an_answer_ends_where_the_next_question_begins(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (CITIES, "The capital is Berlin, of course."),
        (ENTAILMENT, "It is a case of not entailment."),
        (CITIES, "We can eliminate (A)."),
        (CITIES, "The least likely choice is A."),
        (CITIES, "The option to eliminate: Paris"),
        (CITIES, "Which of these is wrong?\nParis"),
        (CITIES, "I would avoid\nParis"),
        (NO_YES, "No problem! I know that one."),
        (NO_YES, "No. 5 is the answer"),
        (NO_YES, "The answer is no longer known."),
        (TRUTH, "The opposite is true."),
    ],
)
def test_a_mention_is_no_statement(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (ENTAILMENT, "Entailment: No"),
        (CITIES, "Paris: Incorrect.\nLondon: Correct."),
        (CITIES, "(A) incorrect"),
        (CITIES, "A. Paris is the capital of France and does not match."),
        (NO_YES, "Yes. The passage denies this."),
        (LETTERS, "A. Incorrect."),
        (LETTERS, "A) This statement is false."),
        (LETTERS, "A: 10%\nB: 70%"),
        (LETTERS, "Answer: A. Wrong."),
        (NO_YES, "Yes. It is not so."),
        (NO_YES, "[x] yes\n[ ] no"),
        (NO_YES, "~~yes~~"),
    ],
)
def test_a_choice_with_its_verdict_is_not_named(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (NO_YES, "No. Wait, yes."),
        (NO_YES, "Yes, but actually no."),
        (NO_YES, "Yes, you asked for one word. No"),
        (NO_YES, "Yes. I doubt it."),
        (NO_YES, "Yes, if it rains."),
        (NO_YES, "No, I can't answer that."),
        (NO_YES, "The answer is yes? No way."),
        (RELATIONS, "Answer: entailment. Hmm, on second thought, neutral."),
        (CITIES, "Answer: C. Most people choose A."),
        (CITIES, "The answer is C. If it were France, the answer would be A."),
        (CITIES, "**C) Rome**\n\nMany people select A because Paris is famous."),
        (LETTERS, "C is correct. A is correct for France only."),
    ],
)
def test_what_is_doubted_or_taken_back_is_not_named(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (("Ja", "Nein"), "Ja\nnicht"),
        (("Paris", "Rom"), "Die Antwort ist nicht Paris"),
        (("Paris", "Rom"), "Antwort: Paris. Das ist falsch."),
        (("Paris", "Londres"), "Ce n'est pas Paris."),
        (("Москва", "Киев"), "Не Москва"),
        (("да", "нет"), "Нет, не знаю"),
        (("القاهرة", "بغداد"), "ليست القاهرة"),
        (("evet", "hayır"), "Evet değil"),
        (("はい", "いいえ"), "答えははいではありません"),
        (("北京", "上海"), "不是\n北京"),
        (("서울", "부산"), "서울이 아닙니다"),
    ],
)
def test_words_of_any_language_beside_a_choice_may_deny_it(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (CITIES, "It could be Paris or London."),
        (CITIES, "Paris, London and Rome"),
        (CITIES, "The answer is Paris or London."),
        (CITIES, "Answer: A, C"),
        (CITIES, "The answer is A, B, and C."),
        (LETTERS, "A or D is correct."),
        (("yes", "no", "maybe"), "The answer must be yes, no, or maybe."),
        (("yes", "no", "maybe"), "Answer: yes | no | maybe"),
        (("yes", "no", "maybe"), "Reply with exactly one of these options:\n- yes\n- no\n- maybe"),
        (CITIES, "The answer is A or B"),
        (CITIES, "Paris\nor rather\nLondon"),
        (CITIES, "A. Paris\nB. London\nC. Rome\nD. Berlin"),
        (CITIES, "C) Paris"),
        (CITIES, "Between (A) and (B)..."),
        (CITIES, "Paris is not the capital of England, London is."),
        (LETTERS, "A and B"),
        (RELATIONS, "neither entailment nor contradiction"),
        (NO_YES, "Yes and no."),
        (NO_YES, "yes/no"),
        (TRUTH, "It's neither true nor false."),
        (ENTAILMENT, 'It\'s entailment, not "not entailment"'),
    ],
)
def test_several_choices_are_none(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (CITIES, "It is not Paris."),
        (CITIES, "I do not think the answer is Paris."),
        (CITIES, "The answer is not Paris."),
        (CITIES, "The answer cannot be B"),
        (CITIES, "It isn't $\\boxed{B}$."),
        (CITIES, "Write \\boxed{A} where A is the letter."),
        (CITIES, "I would not choose C."),
        (CITIES, "You shouldn't go with Rome"),
        (CITIES, "(A) is wrong."),
        (ENTAILMENT, "This is not an entailment."),
        (LETTERS, "A is wrong, B is wrong."),
        (LETTERS, "I don't think A is correct."),
        (LETTERS, "Neither A nor B is correct."),
        (LETTERS, "It's not true that A is correct"),
        (TRUTH, "There isn't enough information in the premise to conclude that it is true."),
        (CITIES, "I can't determine whether the answer is Paris."),
        (ENTAILMENT, "The answer is not\nentailment."),
        (("北京", "上海"), "不是北京。"),
    ],
)
def test_what_is_denied_is_not_named(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (CITIES, "A man walks into a bar."),
        (CITIES, "I think it is a big city."),
        (CITIES, "The answer is a city."),
        (CITIES, "The answer is A city in France."),
        (CITIES, "Parisian culture"),
        (CITIES, "I do not know."),
        (LETTERS, "A man is walking"),
        (LETTERS, "Vitamin C deficiency"),
        (NO_YES, "There is no way to tell."),
        (NO_YES, "Nobody knows"),
        (DIGITS, "There are 2 reasons"),
        (DIGITS, "The answer is 2.5"),
        (("100", "1000"), "The answer is 1,000."),
        (("10", "100"), "\\boxed{10^2}"),
        (("10", "102"), "10²"),
        (("10", "10000"), "The answer is 10 000"),
        (("10", "10000"), "\\boxed{10{,}000}"),
        (("3", "4"), "\\boxed{3\\sqrt{2}}"),
        (("3", "4"), "The answer is 3 million"),
        (("3", "4"), "-3"),
    ],
)
def test_words_and_numbers_that_only_look_like_a_choice_are_none(choices: Choices, text: str) -> None:
    assert named_choice(text, choices) is None


@pytest.mark.parametrize("text", ["", "  \n", "..."])
def test_nothing_is_no_answer(text: str) -> None:
    assert named_choice(text, CITIES) is None


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (("Москва", "Киев"), "Ответ: Москва", 0),
        (("北京", "上海"), "答案是北京。", 0),
        (("서울", "부산"), "정답은 서울입니다.", 0),
        (("はい", "いいえ"), "答えはいいえです。", 1),
        (("Ja", "Nein"), "Die Antwort ist Nein.", 1),
        (("-3", "3"), "The answer is \u22123.", 0),
        (("\uff30aris", "Rome"), "Paris", 0),
        (("café", "thé"), "CAFE\u0301", 0),
        (("Straße", "Weg"), "STRASSE", 0),
    ],
)
def test_every_script_is_read(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (("A. Paris", "B. London"), "B", 1),
        (("A. Paris", "B. London"), "London", 1),
        (("(B) x", "(A) y"), "A", 1),
        (("B", "A"), "The answer is A.", 1),
    ],
)
def test_a_letter_stands_for_the_choice_that_has_it(choices: Choices, text: str, label: int) -> None:
    assert named_choice(text, choices) == label


def test_choices_that_read_the_same_are_distinguished_by_nothing() -> None:
    assert named_choice("x", ("x", "x")) is None
    assert named_choice("The answer is x!", ("x!", "x?")) is None


@pytest.mark.parametrize(
    "piece",
    ["Paris or London ", "The answer is ", "(A) (B) ", "\\boxed{", "<think>", "A. x\n", "<answer>", "\n- "],
)
def test_a_model_that_has_lost_itself_names_nothing(piece: str) -> None:
    assert named_choice(piece * 5000, CITIES) is None
