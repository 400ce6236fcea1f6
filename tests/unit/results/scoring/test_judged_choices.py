"""Answers that judge the options one by one, settle on one, or speak for one, and those that only look so."""

import time

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
ORGANELLES = ("Mitochondria", "Ribosome", "Nucleus", "Chloroplast")
SUMS = ("12", "15", "18", "21")
CITIES = ("Paris", "London", "Rome")

JUDGED = [
    ("A: No\nB: Yes\nC: No\nD: No", 1),
    ("A ❌\nB ✅\nC ❌\nD ❌", 1),
    ("A) False\nB) True\nC) False\nD) False", 1),
    ("A: True\nB: False\nC: False\nD: False", 0),
    ("A is wrong because it makes ATP. C is wrong: it stores DNA. D is wrong as well. That leaves B.", 1),
    ("Everything but B is wrong.", 1),
    ("All options except (B) can be ruled out.", 1),
]
SETTLED = [
    ("So it has to be B, the ribosome.", 1),
    ("It translates mRNA. That's option B.", 1),
    ("Step 1: Identify the process.\nStep 2: It is translation.\nStep 3: Choose B.", 1),
    ("Given the above, B seems to be the most appropriate answer.", 1),
    ("B seems most likely.", 1),
    ("I think it's probably B.", 1),
    ("By process of elimination, B.", 1),
    ("I initially thought A, but on reflection it's B.", 1),
    ("Translation => B", 1),
    ("B, obviously.", 1),
    ("B for sure", 1),
    ("Only B works.", 1),
    ("Option B satisfies the equation.", 1),
    ("So we have B as the answer.", 1),
    ("Looks like B.", 1),
    ("The answer you're looking for is B.", 1),
    ("To sum up, B.", 1),
    ("TL;DR B", 1),
    ("Okay, B.", 1),
    ("The second option is correct.", 1),
    ("So the correct answer would be the second option.", 1),
    ("The last option is right.", 3),
]
UNCLEAR = [
    *("So it is not B.", "That leaves B or C.", "That leaves A and B.", "By elimination, A or D."),
    *("B, obviously, is wrong.", "B, of course, cannot be right.", "B seems least likely."),
    *("B seems most unlikely.", "B is the most incorrect option.", "B is the most tempting answer."),
    *("The second option is wrong.", "My second choice would be C.", "Option 5", "Option 2 is wrong."),
    # What is left is no answer before it is said to be one.
    *("We can rule out A, C and D.", "Not A, not C, not D.", "Neither A nor C nor D is right."),
    *("Everything but B is right.", "Everything but B and C is wrong.", "Almost everything but B is wrong."),
    *("A is wrong, B is wrong.", "I would rule out A and C.", "Not A, B, C or D."),
    *("A: Yes\nB: Yes\nC: No\nD: No", "A: No\nB: No\nC: No\nD: No", "A ✅\nB ✅\nC ❌\nD ❌"),
    *("A: wrong\nB: wrong\nC: not sure\nD: wrong", "A: True\nB: True\nC: False\nD: True"),
    *(
        "Options A, B and C are wrong if the cell is a plant cell.",
        "I can rule out A, B and C, or maybe not C.",
    ),
    *("Eliminate A, B and C. Hmm, D is wrong as well.", "It is neither A nor B nor C nor D."),
    *(
        "A → B → C",
        "The process goes A => B.",
        "ATP => A, proteins => B",
        "That's a D grade.",
        "That is a B cell.",
    ),
    *("Is it B?", "First B, then A.", "Let me consider B.", "Now option B.", "This makes B incorrect."),
    *("It must be that B is false.", "So B must be excluded.", "Thus B is out.", "Only B fails."),
    *(
        "B works if x is even.",
        "It looks like B is wrong.",
        "Dr. B is right.",
        "Answer: A. Wrong.",
        "So: A, B.",
    ),
    *("Students pick B.", "You might say B.", "Don't pick B.", "Choose B only if it is a plant cell."),
]


@pytest.mark.parametrize("texts", [(), ORGANELLES], ids=["letters", "texts"])
@pytest.mark.parametrize(("answer", "label"), [*JUDGED, *SETTLED])
def test_the_choice_that_is_left_or_settled_on_is_named(
    answer: str, label: int, texts: tuple[str, ...]
) -> None:
    assert named_choice(answer, LETTERS, texts) == label


@pytest.mark.parametrize("texts", [(), ORGANELLES], ids=["letters", "texts"])
@pytest.mark.parametrize("answer", UNCLEAR)
def test_what_leaves_a_choice_open_names_none(answer: str, texts: tuple[str, ...]) -> None:
    assert named_choice(answer, LETTERS, texts) is None


@pytest.mark.parametrize(
    ("choices", "answer", "label"),
    [
        (ORGANELLES, "Ribosomes.", 1),
        (ORGANELLES, "Option 2", 1),
        # An option of the prompt may read "2".
        (LETTERS, "Option 2", None),
        (SUMS, "A) 12 - too small\nB) 15 - correct\nC) 18 - too big\nD) 21 - too big", 1),
        (ORGANELLES, "The last one, chloroplast.", 3),
        (CITIES, "Paris was my first thought; it's London.", 1),
        (("positive", "negative"), "Positive sentiment.", 0),
        (("positive", "negative"), "Overall, the review leans negative.", 1),
        (("yes", "no"), "Indeed, yes.", 0),
        (("yes", "no"), "No opinion.", None),
        (
            LETTERS,
            "A. Yes, because it was late\nB. No, because of C\nC. No, since it rained\nD. No, never",
            None,
        ),
        (LETTERS, "A. Yes\nB. No\nC. Maybe\nD. Never", None),
        (LETTERS, "A. red\nB. blue\nC. green\nD. A, B and C are wrong", None),
        (("A", "B", "C"), "A. Correct\nB. Incorrect\nC. Not enough information", None),
        (("yes", "no"), "So, maybe yes.", None),
    ],
)
def test_texts_are_settled_on_as_letters_are_and_lists_judge_nothing(
    choices: tuple[str, ...], answer: str, label: int | None
) -> None:
    assert named_choice(answer, choices) == label


@pytest.mark.parametrize(
    "texts",
    [
        ("Yes", "No", "Maybe", "Never"),
        ("Yes, because it was late", "No, because", "No, it rained", "No, never"),
    ],
)
def test_a_list_of_options_that_read_as_verdicts_judges_nothing(texts: tuple[str, ...]) -> None:
    listed = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=True))
    assert named_choice(listed, LETTERS, texts) is None
    assert named_choice(f"The options are:\n{listed}", LETTERS, texts) is None


@pytest.mark.parametrize("part", ["so ", "- ", "A, ", "not A, ", "B ", "a", "=> ", "A is wrong. ", "it's "])
def test_repeated_words_take_time_by_their_length(part: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        named_choice("x " + part * (count // len(part)), LETTERS)
        return time.process_time() - began

    seconds(2_000)
    # Four times the text takes some four times as long, and not sixteen times.
    assert seconds(16_000) < 12 * seconds(4_000) + 0.1


METALS = ("iron", "copper", "zinc", "silver oxide")

SPOKEN_FOR = [
    ("The roof is green, so I lean towards copper.", 1),
    ("The colour, together with the patina, points to copper (option B).", 1),
    ("Because it conducts best, the metal that fits this wire is copper.", 1),
    ("The metal in old roofs is **copper** (B), in contrast to gutters, which have zinc (C).", 1),
    ("B is right. Zinc (C) covers gutters, iron (A) rusts.", 1),
    ("Most likely metal: **copper** (B)", 1),
    ("A fails for roofs, C fails for wires, D fails for both. Only B is always true.", 1),
    ("The wire isn't iron, since it doesn't rust. Of what is left, its colour points to copper.", 1),
    ("I'd answer B. Feel free to ask about A, C or D!", 1),
    ("Old roofs are covered with copper.", 1),
    ("Copper makes up the largest part of the roof (less than 1% is tin).", 1),
    ("It has to be copper: iron rusts, and zinc is not green.", 1),
    ("(A) iron ❌\n(B) copper ← correct\n(C) zinc ❌\n(D) silver oxide ❌", 1),
    ("✅ **B. copper**\n\n❌ A. iron: rusts\n❌ C. zinc: dull\n❌ D. silver oxide: dear", 1),
    ("A: wrong (rusts). B: right (green). C: wrong (dull). D: wrong (dear).", 1),
    ("Answer\n======\nB) copper", 1),
    ("正确答案是B。铜会变绿。", 1),
    ("La risposta corretta è la B, il rame.", 1),
    ("Somit ist B die richtige Antwort.", 1),
    ("Of the options, (B) fits best.", 1),
    ("I would lean towards option B here, though A is also reasonable.", 1),
]
SPOKEN_FOR_NONE = [
    "The correct answer is:",
    "A) iron - This is the metal that is found in",
    "Option A: iron rusts in the rain.\nOption B: copper turns",
    "Iron rusts; copper turns green; zinc is dull.",
    "Copper sulphate is blue. Iron sulphate is green.",
    "Hence option B is not named by the author.",
    "The force on the roof (B) is equal to its weight.",
    "Thus the final product B is formed.",
    "Two metals remain: A and B.",
    "B. zinc",
    "E. coli grows on copper roofs and E. coli on iron ones.",
    "If the roof were grey, the answer would be C.",
    "The other engineer chose copper over zinc.",
    "The answer is copper. Or zinc.",
    "I would not rule out copper.",
    "[THINK]The answer is iron.[/THINK]It is told above.",
]


@pytest.mark.parametrize(("answer", "label"), SPOKEN_FOR)
def test_the_option_that_the_clauses_speak_for_is_named(answer: str, label: int) -> None:
    assert named_choice(answer, LETTERS, METALS) == label


@pytest.mark.parametrize("answer", SPOKEN_FOR_NONE)
def test_clauses_that_speak_for_none_name_none(answer: str) -> None:
    assert named_choice(answer, LETTERS, METALS) is None
