"""Names of projects that look the same are one name, and none has what is not seen."""

import pytest

from services.scheduler.projects.project_name import look_of, name_problem


@pytest.mark.parametrize(
    "twin",
    [
        "EVALS  of Safety-1",
        "evals of ѕаfеtу-1",  # Cyrillic
        "еvаlѕ оf ѕаfеtу-1",
        "ΕVΑLS of safety-1",  # Greek capitals
        "ｅｖａｌｓ of safety-1",  # full width
        "𝐞𝐯𝐚𝐥𝐬 of 𝓼𝓪𝓯𝓮𝓽𝔂-𝟏",  # of mathematics
        "evals of safety\u20111",
        "evals of safety–1",
        "evals of safety−1",
        "evals of safety-١",  # an Arabic digit
    ],
)
def test_names_that_look_the_same_have_one_look(twin: str) -> None:
    assert look_of(twin) == look_of("evals of safety-1") == "evals of safety-1"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("a1", "a2"),
        ("mail", "mall"),
        ("Über", "Uber"),
        ("été", "ete"),
        ("評価", "評定"),
        ("день", "дань"),
        ("ab", "a b"),
    ],
)
def test_names_that_differ_have_looks_that_do(name: str, other: str) -> None:
    assert look_of(name) != look_of(other)
    assert name_problem(name) is name_problem(other) is None


@pytest.mark.parametrize(
    ("name", "twin"),
    [("öl", "ӧl"), ("Əli", "әli"), ("Hawaiʻi", "Hawai'i"), ("工場", "エ場"), ("naïve", "nаїve")],
)
def test_twins_with_marks_and_of_other_alphabets_have_one_look(name: str, twin: str) -> None:
    assert look_of(name) == look_of(twin)


@pytest.mark.parametrize(
    "name",
    ["Azərbaycan", "佐々木", "〆切", "Hawaiʻi", "Oʻzbek", "ɓaɗɗa", "Gbe ɔ", "ދިވެހި", "День", "한국어", "ไทย"],
)
def test_names_of_living_alphabets_are_taken(name: str) -> None:
    assert name_problem(name) is None


def test_a_letter_and_its_mark_are_one_letter() -> None:
    assert look_of("e\u0301te\u0301") == look_of("été")


@pytest.mark.parametrize(
    "name",
    [
        "safe\u034fty",  # joins graphemes
        "safe\ufe0fty",  # selects a variation
        "safe\U000e0100ty",
        "\u3164",  # a filler
        "safe\u2800ty",  # a pattern without dots
        "ѕ\u1160",
        "sɑfety",  # phonetic
        "ᏚᎪFETY",  # Cherokee
        "ꓢꓐ",  # Lisu
        "\u202esafety",
        "safe\u200bty",
        "12",
        "-12",
        "١٢",
        " a",
        "",
        "a" * 65,
    ],
)
def test_names_with_what_is_not_seen_or_rarely_read_are_refused(name: str) -> None:
    assert name_problem(name)
