"""Rows in the form of IFEval, with every instruction, and answers of all kinds to them."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import punkt

Row = dict[str, object]
# Answers that are put together of parts, beside those that are written here.
_DRAWN = 14

_ASKED: Sequence[tuple[tuple[str, dict[str, object]], ...]] = (
    (("punctuation:no_comma", {}),),
    (("keywords:existence", {"keywords": ["river", "old (clock|cat)"]}),),
    (("keywords:frequency", {"keyword": " river ", "frequency": 2, "relation": "at least"}),),
    (("keywords:frequency", {"keyword": "the", "frequency": 2, "relation": "less than"}),),
    (("keywords:forbidden_words", {"forbidden_words": ["clock", "so"]}),),
    (("keywords:letter_frequency", {"letter": "E", "let_frequency": 9, "let_relation": "at least"}),),
    (("keywords:letter_frequency", {"letter": "o", "let_frequency": 4, "let_relation": "less than"}),),
    (("language:response_language", {"language": "de"}),),
    (("language:response_language", {"language": "en"}),),
    (("length_constraints:number_sentences", {"num_sentences": 3, "relation": "at least"}),),
    (("length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}),),
    (("length_constraints:number_paragraphs", {"num_paragraphs": 2}),),
    (("length_constraints:number_words", {"num_words": 12, "relation": "at least"}),),
    (("length_constraints:number_words", {"num_words": 12, "relation": "less than"}),),
    (
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "The"},
        ),
    ),
    (("detectable_content:number_placeholders", {"num_placeholders": 2}),),
    (("detectable_content:postscript", {"postscript_marker": "P.S."}),),
    (("detectable_content:postscript", {"postscript_marker": "P.P.S"}),),
    (("detectable_content:postscript", {"postscript_marker": "Note:"}),),
    (("detectable_format:number_bullet_lists", {"num_bullets": 2}),),
    (("detectable_format:constrained_response", {}),),
    (("detectable_format:number_highlighted_sections", {"num_highlights": 2}),),
    (("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2}),),
    (("detectable_format:json_format", {}),),
    (("detectable_format:title", {}),),
    (("combination:two_responses", {}),),
    (("combination:repeat_prompt", {"prompt_to_repeat": "Write about the river."}),),
    (("startend:end_checker", {"end_phrase": "Is there more?"}),),
    (("startend:quotation", {}),),
    (
        (
            "change_case:capital_word_frequency",
            {"capital_frequency": 2, "capital_relation": "at least"},
        ),
    ),
    (
        (
            "change_case:capital_word_frequency",
            {"capital_frequency": 2, "capital_relation": "less than"},
        ),
    ),
    (("change_case:english_capital", {}),),
    (("change_case:english_lowercase", {}),),
    (
        ("punctuation:no_comma", {}),
        ("length_constraints:number_words", {"num_words": 8, "relation": "at least"}),
        ("startend:end_checker", {"end_phrase": "Is there more?"}),
    ),
)
_WRITTEN = (
    "",
    " \n ",
    "My answer is no.",
    '"The old clock, as Dr. X. says, e.g. at noon, is SLOW. IT IS U.S. made! Is there more?"',
    "the river is long and old and the old cat sleeps there all day because it is warm",
    "THE RIVER IS LONG AND THE OLD CLOCK STANDS STILL BECAUSE NOBODY WINDS IT.",
    "Der Fluss ist lang, und die alte Uhr steht still, weil niemand sie aufzieht.",
    "Here it is:\n* one river\n* *two* stones\n- three\nP.S. That is all.\np. p. s. no more",
    "<<The river>>\n\n'The' end, [name] of [place].\n\n***\n\nSo **it** *was*.",
    "A first one. ****** A second one.",
    "******A first one.******A second one.******",
    "One ****** one ****** \n ****** two",
    '```json\n{"river": [1, 2]}\n```',
    "Section 1: the river.\nSection 2\nthe clock. Section3",
    "Write about the river.\n\nThe river? The river. Note: it's long.",
    "Sure!\nthe river only\nHope this helps.",
    "***one***\n***",
    "*\n\n-\n**a** ** ** *b*",
    "42",
)
_PARTS = (
    *("The river", "old clock", "the cat's", "e.g. this", "Mr. Y", "RIVER", "U.S.A.", "so"),
    *("*bold*", "**bolder**", "<<A title>>", "[a place]", "Section 1", "Section 2.", "******", "***"),
    *("* item", "- item", "P.S. yes", "Note: no", "Is there more?", '"', "I'm", "3.5", "end.", "What?!"),
    *("...", "(so)", "Ünï", "it is long and warm here"),
)
_BETWEEN = (" ", " ", " ", ", ", ". ", "\n", "\n\n")


@cache
def _answers() -> Sequence[str]:
    draw = Random("instructions")
    drawn = []
    for _ in range(_DRAWN):
        parts = [draw.choice(_PARTS) + draw.choice(_BETWEEN) for _ in range(draw.randint(2, 24))]
        drawn.append("".join(parts))
    return (*_WRITTEN, *drawn)


def instruction_rows() -> list[Row]:
    """Every instruction with every answer."""
    return [
        {
            "key": number,
            "prompt": f"Write about river {number}.",
            "instruction_id_list": [name for name, _ in asked],
            "kwargs": [options for _, options in asked],
        }
        for number, (asked, _) in enumerate(product(_ASKED, _answers()))
    ]


def instruction_answer(row: Row) -> Sequence[str]:
    answers = _answers()
    return (answers[int(str(row["key"])) % len(answers)],)


def write_punkt(folder: Path) -> None:
    """The model of sentences as NLTK reads it from a folder that NLTK_DATA names."""
    model = punkt.load_model("english")
    place = folder / "tokenizers" / "punkt_tab" / "english"
    place.mkdir(parents=True)
    files = {
        "collocations.tab": ["\t".join(pair) for pair in sorted(model.collocations)],
        "sent_starters.txt": sorted(model.sent_starters),
        "abbrev_types.txt": sorted(model.abbrev_types),
        "ortho_context.tab": [f"{word}\t{int(flag)}" for word, flag in sorted(model.ortho_context.items())],
    }
    for name, lines in files.items():
        (place / name).write_text("\n".join(lines), encoding="utf-8")
