"""Reasons that tell of the other options, letters that are left, and replaced ones in other languages."""

from collections.abc import Sequence

import pytest

from services.results.scoring.choices.reading import named_choice

LETTERS = ("A", "B", "C", "D")
CITIES = ("London", "Paris", "Berlin", "Madrid")
SHARES = ("1/2", "1/4", "1/8", "3/4")
GENOTYPES = ("AaBb", "AABB", "aabb", "Aabb")


def _read(answer: str, texts: Sequence[str] = CITIES, *, is_cut: bool = False) -> str | None:
    label = named_choice(answer, LETTERS, texts, is_cut=is_cut)
    return None if label is None else LETTERS[label]


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is B because A is in the UK, C is in Germany and D is in Spain.",
        "The answer is B since A is in the UK, while C is in Germany.",
        "$\\boxed{B}$ is the final answer.",
        "B (I'm 90% sure)",
        "【答案】B\n【解析】A项是英国首都。",
        "【答案】B\n【解析】A项错误，C项错误。",
        "B ist richtig, A ist falsch.",
        "B ist richtig, A und C sind falsch.",
        "B项正确，A项错误。",
        "That makes B correct.",
        "B makes the most sense.",
        "B looks correct to me.",
        "Looking at the options, B matches.",
        "Eliminating A, C, and D leaves B.",
        "Since A, C and D aren't in France, B.",
        "By the rule of law, B.",
        "Only Paris is in France.",
        "Among A, B, C and D, only B is in France.",
        "B instead of C.",
        "‘B’",
        "➡️ B",
        "B [end of text]",
        "2nd option",
        "La respuesta no es A, es B.",
        "Não é a A, é a B.",
        "Это не A, а B.",
        "A değil, B.",
        "不是A，是B。",
        "AではなくBです。",
        "A가 아니라 B입니다.",
        "Da Paris die Hauptstadt ist, ist B richtig.",
        "A) London\n**B) Paris**\nC) Berlin\nD) Madrid",
        "$\\text{The answer is B}$",
        "A... no, B.",
        "Answer is B, cause it is in France",
        "imo B",
        "B lol",
        "i'd say B tbh",
        "答案应该是B而不是D。",
        "The largest city is Paris (2.1 million), followed by Madrid (3.2) and London (8.8).",
    ],
)
def test_the_letter_is_read(answer: str) -> None:
    assert _read(answer) == "B"


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is B because A is in the UK, C is correct.",
        "The answer is B because A is wrong, but C is right.",
        "$\\boxed{B}$ is not the final answer.",
        "B (I'm 30% sure)",
        "【答案】B\n【解析】B项错误。",
        "【答案】B\n【解析】A项错误，故选C。",
        "B ist richtig, C ist richtig, A ist falsch.",
        "B ist richtig, B ist falsch.",
        "A错误，B正确，C正确，D错误。",
        "B makes sense.",
        "B makes the most sense if it is in France.",
        "Eliminating A leaves B and C.",
        "Eliminating B leaves three.",
        "$\\text{The answer is B or C}$",
        "A? No, B? No, C? No.",
        "A. No, B is wrong too.",
        "prob A or B",
        "lol B or C",
        "A tbh, but could be B",
        "答案可能是D而不是B。",
        "A is followed by B.",
        "1. B\n2. C",
        "The answer is B since A is in the UK, C is also correct.",
        "Only B and C are plausible.",
        "Since A is in the UK, B or C.",
        "Since A or B is in France, C.",
        "B instead of C or D?",
        "No es A, es B o C.",
        "不是A，是B还是C？",
        "A değil, B değil.",
        "Da A falsch ist, ist B oder C richtig.",
        "**A) London**\n**B) Paris**\nC) Berlin\nD) Madrid",
        "A) London\nB) Paris\nC) Berlin\nD) Madrid",
    ],
)
def test_an_unclear_letter_is_unread(answer: str) -> None:
    assert _read(answer) is None


def test_options_that_differ_in_case_alone_are_read_as_they_are_written() -> None:
    assert [_read(genotype, GENOTYPES) for genotype in GENOTYPES] == [*LETTERS]
    assert _read("aABB", GENOTYPES) is None


def test_a_cut_answer_is_read_where_its_letter_and_the_text_of_it_stand() -> None:
    assert _read("Answer: B. Paris has been the capital since", is_cut=True) == "B"
    assert _read("Answer: B. However, this may be", is_cut=True) is None


def test_a_reason_that_denies_is_no_other_answer() -> None:
    assert named_choice("Yes, because there is no evidence against it.", ("Yes", "No")) == 0
    assert named_choice("Yes, because no.", ("Yes", "No")) is None
    assert named_choice("Yes. There is no evidence for it.", ("Yes", "No")) is None


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("$\\boxed{\\frac{1}{8}}$", "C"),
        ("The answer is $\\frac{1}{4}$.", "B"),
        ("2\\frac{1}{4}", None),
        ("\\boxed{2 \\frac{1}{4}}", None),
        ("-\\frac{1}{4}", None),
        ("\\frac{1}{4}x", None),
        ("\\sqrt{\\frac{1}{4}}", None),
    ],
)
def test_a_fraction_is_read_however_it_is_set(answer: str, choice: str | None) -> None:
    assert _read(answer, SHARES) == choice
