"""Answers of everyday kinds beside plain claims, and those that only look like them."""

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
METALS = ("iron", "copper", "zinc", "silver")
YES_NO = ("no", "yes")
TRUTH = ("True", "Neither", "False")
NLI = ("entailment", "neutral", "contradiction")
TONE = ("negative", "positive")
SUMS = ("12", "15", "18", "21")

# By the choices: the answer, and the place of the choice that it names.
CLEAR = {
    LETTERS: [
        ("The answer is C. Wait, no, the answer is D.", 3),
        ("Answer: A.\n\nHmm, actually, the correct answer is B.", 1),
        ("B\n\nOn second thought, C is correct.", 2),
        ("I would say A. Sorry, I made an error: option D is correct.", 3),
        ("My answer is A. Correction: the answer is C.", 2),
        ("The speed of light is C. 300,000 km/s.", 2),
        ("The largest planet is (D) Jupiter.", 3),
        ("The author was B: Melville", 1),
        ("I am torn between A and B, but if I had to choose, I'd say B.", 1),
        ("It is hard to say. If forced to pick: D", 3),
        ("A? No, B.", 1),
        ("Is it A or C? C.", 2),
        ("Of the four, only D fits, so the answer is D.", 3),
        ("Let us eliminate. A is too old. B is too new. The answer is C.", 2),
        ("Looking at the options:\nA) copper\nB) iron\nC) tin\nD) lead\n\nThe correct choice is B.", 1),
        ("La respuesta correcta es la C.", 2),
        ("La bonne réponse est D.", 3),
        ("Die richtige Antwort ist B.", 1),
        ("La risposta corretta è A.", 0),
        ("A resposta correta é a letra C.", 2),
        ("Правильный ответ: B.", 1),
        ("Ответ — D.", 3),
        ("正确答案是C。", 2),
        ("答案选D", 3),
        ("正解はBです。", 1),
        ("答えはAです。", 0),
        ("정답은 C입니다.", 2),
        ("الإجابة الصحيحة هي B", 1),
        ("सही उत्तर C है।", 2),
        ("Doğru cevap D'dir.", 3),
        ("Het juiste antwoord is A.", 0),
        ("B, not C", 1),
        ("**Answer:** D. Hope this helps!", 3),
        ("\\[\\boxed{\\text{C}}\\]", 2),
        ('{"reason": "It is denser.", "answer": "B"}', 1),
        ("I believe the correct option is (A).", 0),
        ("Since lead is dense, the answer must be D — lead.", 3),
    ],
    METALS: [
        ("The metal in the wire is copper.", 1),
        ("The metal is silver.", 3),
        ("The element with the symbol Zn is zinc.", 2),
        ("Iron is not used here. Copper is.", 1),
        ("Zinc isn't magnetic; iron is.", 0),
        ("copper? No, silver.", 3),
        ("Zinc? Iron!", 0),
        ("The answer is zinc. Wait, the correct answer is copper.", 1),
        ("If I had to guess, I would pick silver.", 3),
        ("iron: 5%\ncopper: 80%\nzinc: 10%\nsilver: 5%", 1),
        ("Silver. I have seen it tarnish.", 3),
        ("Zinc. My reason is its symbol.", 2),
        ("It's copper.", 1),
        ("I'd go with iron.", 0),
    ],
    YES_NO: [
        ("Yes. No other metal does.", 1),
        ("No, the answer is yes.", 1),
        ("The answer is no. Actually, on reflection, the answer is yes.", 1),
        ("Yes or no: no", 0),
        ("Yes. I checked the passage.", 1),
        ("No. My reading of the text says that it rained.", 0),
        ("Yes: 90%\nNo: 10%", 1),
    ],
    TRUTH: [
        ("The statement is neither true nor false.", 1),
        ("It is neither false nor true", 1),
        ("True, neither or false? False.", 2),
        ("The claim is true.", 0),
    ],
    NLI: [
        ("The hypothesis contradicts the premise.", 2),
        ("The premise entails the hypothesis.", 0),
        ("The hypothesis follows from the premise.", 0),
        ("The hypothesis is contradicted by the premise", 2),
        ("Entailment? No, neutral.", 1),
        ("Contradiction: 20%, neutral: 70%, entailment: 10%", 1),
        ("The relationship is neutral.", 1),
    ],
    TONE: [
        ("Positive: 15%\nNegative: 85%", 0),
        ("Positive. I loved each minute.", 1),
        ("The tone is negative.", 0),
        ("Negative. When it ended I was glad.", 0),
        ("positive or negative? negative", 0),
    ],
    SUMS: [
        ("7 + 8 = 15", 1),
        ("15 = 3 × 5", 1),
        ("6 * 3 = 18.", 2),
        ("The total is 21.", 3),
        ("The answer is 12. Wait, no, the answer is 18.", 2),
    ],
}
UNCLEAR = {
    LETTERS: [
        "The answer is A. Wait, maybe B.",
        "The answer is A. Hmm, no.",
        "The answer is A. Wait, some say the answer is B.",
        "The answer is A. Actually, is the answer B?",
        "The answer is A. Actually, the answer is not A.",
        "The answer is A. Actually, the answer could be B or C.",
        "The answer is A. Wait, the answer is B. Or perhaps the answer is C.",
        "A? B? Who knows.",
        "Is it A or C?",
        "A: 50%, B: 50%, C: 0%, D: 0%",
        "A: 10%, B: 20%",
        "If I had to choose between A and B, I'd flip a coin.",
        "If forced to pick: A or B",
        "The teacher's answer is not B. Chalk",
        "The mark was C.",
        "The last letter of the word is D.",
        "Option A says copper. Option B says iron.",
        "I cannot choose between A and D.",
        "None of these is correct.",
        "Both B and C are correct.",
        "Not D.",
    ],
    METALS: [
        "The metal is not copper.",
        "The worst choice is copper.",
        "A common mistake is zinc.",
        "The metal is iron or zinc.",
        "The metal that rusts is iron, and the one in wires is copper.",
        "Is the metal zinc?",
        "Perhaps the metal is zinc.",
        "The metal is copper sulphate.",
        "If it were light, the metal would be zinc.",
        "Some students think the metal is iron.",
        "Iron is not used here. Iron is.",
        "copper? Hardly.",
        "copper or zinc?",
        "iron: 40%\ncopper: 40%\nzinc: 10%\nsilver: 10%",
        "iron: 5%\ncopper: 80%",
        "The answer is zinc. Hmm, copper?",
    ],
    YES_NO: [
        "Yes? No.",
        "No, wait, yes",
        "Yes. No metal does.",
        "No evidence is given.",
        "Yes: 20%",
        "Yes and no.",
        "No other metal does.",
        "Neither yes nor no.",
    ],
    TRUTH: [
        "It is not true.",
        "Is it true or false?",
        "Neither of us knows.",
        "The statement is neither here nor there.",
    ],
    NLI: [
        "The hypothesis does not contradict the premise.",
        "The premise might entail the hypothesis.",
        "The first sentence entails it, the second contradicts it.",
        "Does the premise entail the hypothesis?",
        "If the premise entails the hypothesis, say so.",
        "The hypothesis contradicts the premise. Or it is neutral.",
    ],
    TONE: ["Positive: 15%", "The tone is far from positive.", "Positive? Hardly.", "positive, negative"],
    SUMS: ["7 + 8", "12 + 3 = 7 + 8", "12 = 15", "There are 12 or 15.", "7 + 8 = 14"],
}


@pytest.mark.parametrize(
    ("choices", "answer", "label"), [(choices, *row) for choices, rows in CLEAR.items() for row in rows]
)
def test_a_conclusion_is_read(choices: tuple[str, ...], answer: str, label: int) -> None:
    assert named_choice(answer, choices) == label


@pytest.mark.parametrize(
    ("choices", "answer"), [(choices, answer) for choices, rows in UNCLEAR.items() for answer in rows]
)
def test_what_concludes_nothing_is_unread(choices: tuple[str, ...], answer: str) -> None:
    assert named_choice(answer, choices) is None


@pytest.mark.parametrize("answer", ["The metal in the wire is copper.", "copper? No, silver.", "7 + 8 = 15"])
def test_the_end_of_an_answer_that_was_cut_concludes_nothing(answer: str) -> None:
    assert named_choice(answer, SUMS if "=" in answer else METALS, is_cut=True) is None
