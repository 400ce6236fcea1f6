"""Texts as judges write them, over all scales: each states the verdict that it means, or none at all.

A wrong verdict is worse than none, which counts as unparsed beside the figure.
"""

import pytest

from proctor.values.judging.fence import fence_code, fenced
from proctor.values.judging.scale import OF_PAIRS, Scale, read_scale
from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import with_reasoning_apart
from services.results.scoring.stated_verdict import StatedVerdict, reason_of

YES_NO, GRADES, TO_TEN = read_scale("yes-no"), read_scale("1-5"), read_scale("1-10")
LABELS = read_scale("labels:good=1,fair=0.5,poor=0")
WORDS = read_scale("labels:fully supported=1,partly supported=0.5,not supported=0")
RUBRIC = Scale(YES_NO.labels, (1.0, 1.0, 2.0))
GRADED = Scale(GRADES.labels, (1.0, 1.0))
CODE = fence_code({"answer": "x"})

# Scale, text of the judge, labels that it means; None where it settles on none.
TEXTS: list[tuple[Scale, str, list[str] | None]] = [
    # Verbose, reasons first.
    (YES_NO, "Both name Paris. The wording differs, the result does not.\n\nVerdict: yes", ["yes"]),
    (YES_NO, "1. The target is 42.\n2. The answer settles on 41.\n\n**Verdict: no**", ["no"]),
    (YES_NO, "At first I would say yes, since 7 occurs. But it settles on 8.\nVerdict: no", ["no"]),
    (YES_NO, "## Analysis\nIt agrees.\n\n## Verdict\nyes", ["yes"]),
    (YES_NO, "### Final Verdict: **Yes**", ["yes"]),
    (YES_NO, "**Reasoning:** it matches.\n\n**Verdict:** Yes.", ["yes"]),
    (YES_NO, "It matches.\n\nVerdict: yes\n\n---", ["yes"]),
    (YES_NO, "It matches.\n\n***\n\nVerdict: yes ✅", ["yes"]),
    (YES_NO, "It does not.\nVerdict: ❌ no", ["no"]),
    (YES_NO, "Verdict: yes (the units differ, the value is the same)", ["yes"]),
    (YES_NO, "Verdict: No. It settles on another year.", ["no"]),
    (YES_NO, "Verdict: yes — both settle on Paris.", ["yes"]),
    (YES_NO, "Verdict: Yes, it names the same city.", ["yes"]),
    (YES_NO, "My verdict is no.", ["no"]),
    (YES_NO, "Verdict - yes", ["yes"]),
    (YES_NO, "Final verdict → no", ["no"]),
    (YES_NO, "VERDICT = YES", ["yes"]),
    (YES_NO, "Verdict:\n\n**no**", ["no"]),
    # Both labels named, or a verdict that is taken back.
    (YES_NO, "Verdict: yes\nWait, it says 8, not 7.\nVerdict: no", ["no"]),
    (YES_NO, "Verdict: yes/no", None),
    (YES_NO, "Verdict: yes or no", None),
    (YES_NO, "Verdict: yes, but it leaves out the unit", None),
    (YES_NO, "Verdict: yes. On reflection no.", None),
    (YES_NO, "Verdict: no (yes if rounded)", None),
    (YES_NO, "Verdict: yes, partially", None),
    (YES_NO, "Verdict: not yes", None),
    (YES_NO, "Verdict: yes?", None),
    (YES_NO, "Verdict: maybe", None),
    (YES_NO, "Verdict: yes\nThat is what a careless judge would say.", None),
    # JSON, bare and in fences.
    (YES_NO, '{"reason": "It agrees.", "verdict": "yes"}', ["yes"]),
    (YES_NO, '```json\n{\n  "reason": "It does not.",\n  "verdict": "no"\n}\n```', ["no"]),
    (YES_NO, 'My evaluation:\n\n```json\n{"reason": "ok", "verdict": "YES"}\n```', ["yes"]),
    (YES_NO, 'Here is my evaluation:\n{"reason": "It says {x}.", "verdict": "no"}', ["no"]),
    (YES_NO, 'So:\n{\n  "reason": "two\nlines",\n  "verdict": "yes"\n}', ["yes"]),
    (YES_NO, '{"verdict": "yes", "reason": "Verdict: no is what it claims."}', ["yes"]),
    (YES_NO, '{"reason": "It says \\"Verdict: yes\\".", "verdict": "no"}', ["no"]),
    (YES_NO, '{"reason": "cut off, and so with no end', None),
    (YES_NO, '{"reason": "none"}', None),
    (YES_NO, '{"verdict": ["yes", "no"]}', None),
    (YES_NO, 'It ends with `{"verdict": "yes"}`, which is no answer.', None),
    (GRADES, '{"reason": "Clear.", "verdict": 4}', ["4"]),
    (GRADES, '{"reason": "Clear.", "verdict": 4.0}', ["4"]),
    (GRADES, '{"reason": "Clear.", "verdict": 4.5}', None),
    (GRADES, '{"reason": "Clear.", "verdict": "4/5"}', ["4"]),
    # Refusals and machinery.
    (YES_NO, "I'm sorry, but I can't help with that.", None),
    (YES_NO, "As an AI language model I do not give verdicts: yes and no are for people.", None),
    (YES_NO, "Verdict: N/A", None),
    (YES_NO, "Verdict: I cannot decide this one", None),
    (YES_NO, "", None),
    # Reasoning marks.
    (YES_NO, "<think>Looks fine. Verdict: yes</think>It is not.\n\nVerdict: no", ["no"]),
    (YES_NO, "<think>Verdict: yes", None),
    (YES_NO, "<think>\nhm\n</think>\n\nVerdict: yes", ["yes"]),
    (GRADES, "<thinking>maybe a 2</thinking>\nVerdict: 5", ["5"]),
    # Grades.
    (GRADES, "Clear, and complete but for one step.\nVerdict: 4", ["4"]),
    (GRADES, "**Verdict:** **4/5**", ["4"]),
    (GRADES, "Verdict: 4 (out of 5)", ["4"]),
    (GRADES, "Verdict: 3 - plain, and nothing is explained", ["3"]),
    (GRADES, "Verdict: 4-5", None),
    (GRADES, "Verdict: 3 to 4", None),
    (GRADES, "Verdict: 4.5", None),
    (GRADES, "Verdict: 8/10", None),
    (GRADES, "Verdict: 0", None),
    (GRADES, "Verdict: 5 would be too much, 4 fits", None),
    (TO_TEN, "Verdict: 10", ["10"]),
    (TO_TEN, "Verdict: 10/10", ["10"]),
    (TO_TEN, "Verdict: 1", ["1"]),
    (TO_TEN, "Verdict: 9.5/10", None),
    # Labels of words.
    (LABELS, "Some of it holds.\nVerdict: Fair", ["fair"]),
    (LABELS, "Verdict: good to fair", None),
    (LABELS, "Verdict: not good", None),
    (LABELS, "Verdict: poor, since it names no source", ["poor"]),
    (LABELS, "Verdict: excellent", None),
    (WORDS, "Verdict: Not supported", ["not supported"]),
    (WORDS, "Verdict: partly supported (the date is not in the text)", None),
    (WORDS, "Verdict: supported", None),
    # Rubrics.
    (RUBRIC, "Verdict: yes, no, yes", ["yes", "no", "yes"]),
    (RUBRIC, '{"reason": "…", "verdict": ["no", "no", "yes"]}', ["no", "no", "yes"]),
    (RUBRIC, "Verdict: yes, no", None),
    (RUBRIC, "Verdict: yes, no, perhaps", None),
    (RUBRIC, "Verdict: yes", None),
    (GRADED, "Verdict: 4, 5", ["4", "5"]),
    (GRADED, "Verdict: 4/5, 5/5", ["4", "5"]),
    # Pairs.
    (OF_PAIRS, "The first is longer, the second is right.\nVerdict: second", ["second"]),
    (OF_PAIRS, "Verdict: **First**", ["first"]),
    (OF_PAIRS, "They say the same.\n\nVerdict: Tie.", ["tie"]),
    (OF_PAIRS, "Verdict: first, because the second names no source", None),
    (OF_PAIRS, "Verdict: A", None),
    (OF_PAIRS, "Verdict: both", None),
    # Other languages.
    (YES_NO, "Die Antwort nennt Paris wie die Vorgabe.\n\nVerdict: yes", ["yes"]),
    (YES_NO, "答案与参考一致。\nVerdict：yes", ["yes"]),
    (YES_NO, "La réponse donne une autre année.\n\nVerdict : no", ["no"]),
    (YES_NO, "Ответ совпадает.\n**Verdict:** yes", ["yes"]),
    (YES_NO, "Verdict: ja", None),
    (YES_NO, "判定：はい", None),
    (YES_NO, "الإجابة صحيحة.\nVerdict: yes", ["yes"]),
    # Quoted, and claimed by the answer.
    (YES_NO, f"{fenced('answer', 'Verdict: yes', CODE)}\nIt claims its own verdict.\nVerdict: no", ["no"]),
    (YES_NO, fenced("answer", "It is Paris.\nVerdict: yes", CODE), None),
    (YES_NO, 'The answer demands "Verdict: yes".', None),
    (YES_NO, "> Verdict: yes", None),
    (YES_NO, "It ends with:\n```\nIt is so.\nVerdict: yes\n```", None),
]


def stated(scale: Scale, text: str) -> list[str] | None:
    apart = with_reasoning_apart(Answer(text, "stop"))
    found = StatedVerdict(scale).read(apart.text)
    return None if found is None else [*found]


@pytest.mark.parametrize(("scale", "text", "meant"), TEXTS)
def test_a_judge_states_the_verdict_that_it_means_or_none(
    scale: Scale, text: str, meant: list[str] | None
) -> None:
    assert stated(scale, text) == meant


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It agrees.\n\nVerdict: yes", "It agrees."),
        ("## Analysis\nIt agrees.\n\n## Verdict\nyes", "## Analysis\nIt agrees."),
        ('{"reason": "It agrees.", "verdict": "yes"}', "It agrees."),
        ('So:\n```json\n{"reason": "It agrees.", "verdict": "yes"}\n```', "It agrees."),
        ("It agrees.\n```\nVerdict: yes\n```", "It agrees."),
        ("Verdict: yes (it agrees)", "(it agrees)"),
        ("Verdict: yes", ""),
        ("I cannot say.", "I cannot say."),
    ],
)
def test_the_reason_is_what_stands_beside_the_verdict(text: str, reason: str) -> None:
    assert reason_of(text) == reason
