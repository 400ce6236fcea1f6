"""Filters read answers as those of lm-evaluation-harness do."""

import json
import random

import pytest

from services.results.scoring.answer_filters import text_for_code
from services.results.scoring.compiled_scoring import read_filters
from tests.reference.lm_eval_venv import run_in_lm_eval

CHOICES = [
    ["Guilty", "Guilty of Romance", "the wife of Bath", "42."],
    ["a cat", "a cat", "the dog!"],
    ["yes", "no"],
]
LETTER: dict[str, object] = {"regex_pattern": r"(\\([A-Z]\\))"}
STEPS: list[tuple[str, dict[str, object]]] = [
    ("multi_choice_regex", {**LETTER, "group_select": -1, "ignore_case": True, "ignore_punctuation": True}),
    ("multi_choice_regex", {**LETTER, "regexes_to_ignore": ["[aeiou]"]}),
    ("multi_choice_regex", {"regex_pattern": "((?<=answer )[A-D])|([A-D]\\.)|( [A-D] )", "group_select": -1}),
    ("regex", {"regex_pattern": "(-?[0-9]+)|([A-Z])", "group_select": -1}),
    ("map", {"mapping_dict": {"(A)": 1, "yes.": "ja", "42": None}, "default_value": -1}),
    ("map", {"mapping_dict": {"(A)": "a", "(C)": 2.5, "guilty": "g"}}),
    ("format_span", {}),
    ("regex_pos", {}),
]
PARTS = [
    *("(A)", "(C)", "answer B", ": A", ":C", "guilty", "Guilty of romance", "THE WIFE OF BATH", "42", " "),
    *("the dog", "a CAT", "yes.", "\n", "$$", " $ ", "person: Ada, none", "PER: Obi", "location : Accra"),
    *("date: 1 May, today", "org: UN", "('go', 'VERB')", "('it''s', 'X')", "[('a', 'NOUN'), ('b', 'ADP')]"),
]
THEIRS = """\
import json, sys
import lm_eval.filters
from lm_eval.api.registry import get_filter

said = []
for function, options, given in json.load(sys.stdin):
    answers, docs = [[text] for text, _ in given], [{"choices": choices} for _, choices in given]
    said.append([list(found)[0] for found in get_filter(function)(**options).apply(answers, docs)])
print(json.dumps(said))
"""


@pytest.mark.thorough
def test_what_a_filter_leaves_is_what_it_leaves_there() -> None:
    draws = random.Random(5)
    answers = ["", *("".join(draws.choices(PARTS, k=draws.randint(1, 5))) for _ in range(150))]
    given = [(text, draws.choice(CHOICES)) for text in answers]
    cases = [(function, options, given) for function, options in STEPS]
    theirs = json.loads(run_in_lm_eval(["-c", THEIRS], input_text=json.dumps(cases)).splitlines()[-1])
    for (function, options), expected in zip(STEPS, theirs, strict=True):
        steps = [{"function": function, **options}, {"function": "take_first"}]
        [pipeline] = read_filters(json.dumps([{"name": "own", "filter": steps}]))
        ours = [text_for_code(pipeline, text, choices) for text, choices in given]
        if function == "regex_pos":
            # Without take_first, as its tasks have it: a list of one.
            ours = [list(*tags) for tags in ours]  # type: ignore[misc]  # of objects
        assert ours == expected, function
        assert len({str(found) for found in expected}) > 3
