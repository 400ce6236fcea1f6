"""Texts against texts: equal, contained, shared words, numbers; and regexes that do not run for ever."""

import json
import re
import subprocess
import sys

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.scoring import BootstrapAggregator

from proctor.values.outcome import Answer
from proctor.values.scoring import OutputType
from services.results.scoring.compiled_scoring import (
    CompiledScoring,
    InvalidScoring,
    read_filters,
    read_metric,
)
from services.results.scoring.numbers.written_numbers import named_number
from services.results.scoring.score import Score, ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_match import squad_exact_match, squad_f1
from services.results.scoring.text_metrics import OVERLAP_METRICS
from services.results.scoring.timed_regex import SlowTime, TimedRegex

RIGHT = ("The seeds pass through you.", "Nothing happens . They pass .")
WRONG = ("You grow a melon in your stomach.", "You get sick.")
SAID = "Nothing much happens . The seeds pass through you, I'd say 100%."


def scored(name: str, text: str, target: ScoringTarget, options: object = None) -> Score:
    metric = read_metric(name, json.dumps(options) if options else "")
    return score_answer(CompiledScoring(OutputType.GENERATE_UNTIL, (metric,)), target, Answer(text))


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ("I think it is Paris, France", None, 1.0),
        ("I think it is PARIS", None, 0.0),
        ("I think it is PARIS", {"ignore_case": True}, 1.0),
        ("Par-is", {"ignore_punctuation": True}, 1.0),
        ("London", None, 0.0),
    ],
)
def test_an_answer_may_contain_the_target(text: str, options: object, value: float) -> None:
    assert scored("contains", text, ScoringTarget(texts=("Rome", "Paris")), options).scores == {
        "contains": value
    }


def test_nothing_is_contained_in_nothing() -> None:
    target = ScoringTarget(texts=("...", ""))
    assert scored("contains", "Well...", target, {"ignore_punctuation": True}).scores == {"contains": 0.0}


@pytest.mark.parametrize(
    ("answer", "expected", "exact", "f1"),
    [
        ("The Eiffel Tower!", "eiffel tower", 1.0, 1.0),
        ("eiffel", "the eiffel tower", 0.0, 2 / 3),
        ("a a b", "a b b", 0.0, 2 * (1 / 1) * (1 / 2) / (1 / 1 + 1 / 2)),
        ("theatre", "the atre", 0.0, 0.0),
        ("U.S.A.", "usa", 1.0, 1.0),
        ("the", "a", 1.0, 1.0),
        ("the", "tower", 0.0, 0.0),
        ("well known", "well-known", 0.0, 0.0),
    ],
)
def test_squad_overlooks_case_punctuation_and_articles(
    answer: str, expected: str, exact: float, f1: float
) -> None:
    assert squad_exact_match(answer, expected) == exact
    assert squad_f1(answer, expected) == squad_f1(expected, answer) == pytest.approx(f1)


def test_the_best_of_the_accepted_texts_counts() -> None:
    target = ScoringTarget(texts=("tower of London", "Eiffel Tower"))
    assert scored("squad_f1", "the Eiffel tower", target).scores == {"squad_f1": 1.0}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3.5", 3.5),
        ("It is -2.", -2.0),
        ("about 1,234.5 metres", 1234.5),
        ("\u22124", -4.0),
        ("A change of \u22123 points", -3.0),
        ("4 out of 5", None),
        ("8/10", None),
        ("80 %", None),
        ("1.000.000", None),
        ("4,5", None),
        ("12,34,567", None),
        ("GPT-4 agrees", None),
        ("10\u00b2", None),
        ("5" * 400, None),
        ("1e999", None),
        ("-1e200", None),
        ("2 and again 2.0", 2.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("between 3 and 4", None),
        ("three", None),
        ("B2B", None),
        ("nan", None),
        ("", None),
    ],
)
def test_a_number_is_read_where_there_is_one(text: str, number: float | None) -> None:
    assert named_number(text) == number


def test_a_target_without_a_number_cannot_be_correlated() -> None:
    with pytest.raises(ScoringImpossible, match="not a number"):
        scored("pearson", "4", ScoringTarget(texts=("four",)))


def test_overlap_is_what_the_libraries_say() -> None:
    """BLEU and ROUGE as lm-evaluation-harness calls them: ROUGE through the aggregator of one item."""

    def bleu(text: str) -> float:
        return sacrebleu.corpus_bleu([SAID], [[text]], smooth_value=0.0, tokenize="intl").score

    def rouge(text: str, kind: str) -> float:
        aggregator = BootstrapAggregator()
        lines = [one.replace(" . ", ".\n") for one in (text, SAID)]
        aggregator.add_scores(RougeScorer([kind]).score(*lines))
        return float(aggregator.aggregate()[kind].mid.fmeasure * 100)

    for name, of in {
        "bleu": bleu,
        "rouge1": lambda text: rouge(text, "rouge1"),
        "rouge2": lambda text: rouge(text, "rouge2"),
        "rougeL": lambda text: rouge(text, "rougeLsum"),
    }.items():
        best, worst = max(map(of, RIGHT)), max(map(of, WRONG))
        expected = {"max": best, "acc": float(best > worst), "diff": best - worst}
        for figure, value in expected.items():
            metric = f"{name}_{figure}"
            assert scored(metric, SAID, ScoringTarget(texts=RIGHT, wrong_texts=WRONG)).scores == {
                metric: value
            }


@pytest.mark.parametrize("metric", OVERLAP_METRICS)
def test_an_unread_answer_overlaps_with_nothing(metric: str) -> None:
    score = scored(metric, "", ScoringTarget(texts=RIGHT, wrong_texts=WRONG))
    assert (score.scores, score.is_unparsed) == ({metric: 0.0}, True)


@pytest.mark.parametrize("metric", ["bleu_diff", "rougeL_acc"])
def test_without_wrong_texts_there_is_no_lead(metric: str) -> None:
    with pytest.raises(ScoringImpossible, match="no wrong text"):
        scored(metric, SAID, ScoringTarget(texts=RIGHT))


def test_the_best_overlap_needs_right_texts_only() -> None:
    assert scored("bleu_max", SAID, ScoringTarget(texts=(SAID, *RIGHT))).scores["bleu_max"] == pytest.approx(
        100
    )
    with pytest.raises(ScoringImpossible, match="no right text"):
        scored("bleu_max", SAID, ScoringTarget(wrong_texts=WRONG))


def test_slow_libraries_are_loaded_by_the_tasks_that_need_them_only() -> None:
    program = (
        "import sys, services.results.wiring, services.results.scoring.score_answer\n"
        "print({'sacrebleu', 'nltk', 'scipy.stats', 'statsmodels'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


TRICKY = [
    r"#### (\-?[0-9\.\,]+)",
    r"(-?[$0-9.,]{2,})|(-?[0-9]+)",
    r"\{e<=1\}",
    r"ab{e<=1}c",
    r"x{i}",
    r"\\boxed{(.*)}",
    r"a{,2}",
    r"a{2}b{1,}",
    r"\N{DIGIT ONE}{2}",
    r"(?i)straße",
    r"^$|\Z",
    r"(?<=is )(\w+)(?=\.)",
    r"\b",
    r"x*",
    "{e}",
    "x{e",
    "a{s<=}",
    "(?:a){e<=1,i<=2",
]
TEXTS = [
    "#### 1,234",
    "It is $3.50 or 12",
    "{e<=1}",
    "ab{e<=1}c abc",
    "x{i} x",
    r"\boxed{42}",
    "aaaa aabbb",
    "11 111",
    "STRASSE straße",
    "",
    "\n",
    "The answer is Paris.",
    "xx y",
    "{e} x{e a{s<=} a{e<=1,i<=2",
]


@pytest.mark.parametrize("pattern", TRICKY)
def test_a_timed_regex_reads_what_re_reads(pattern: str) -> None:
    timed = TimedRegex(pattern)
    for text in TEXTS:
        assert timed.findall(text) == re.findall(pattern, text)
        assert timed.remove_from(text) == re.sub(pattern, "", text)


@pytest.mark.parametrize("pattern", ["(", r"\p{L}", "(?|a|b)", "[[:alpha:]]", "a{3,2}", "a{99999999999}"])
def test_what_re_does_not_read_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        TimedRegex(pattern)


def test_a_regex_that_takes_too_long_fails_the_machinery_and_not_the_answer() -> None:
    filters = [{"name": "slow", "filter": [{"function": "regex", "regex_pattern": r"(?:a|b|ab)*[cd]"}]}]
    scoring = CompiledScoring(
        OutputType.GENERATE_UNTIL, (read_metric("exact_match", ""),), read_filters(json.dumps(filters))
    )
    with pytest.raises(ScoringImpossible, match="took over"):
        score_answer(scoring, ScoringTarget(texts=("c",)), Answer("ab" * 60))
    with pytest.raises(ScoringImpossible, match="took over"):
        scored(
            "exact_match", "ab" * 60, ScoringTarget(texts=("c",)), {"regexes_to_ignore": [r"(?:a|b|ab)*[cd]"]}
        )


def test_a_pattern_that_is_slow_again_and_again_is_given_up_and_the_others_go_on() -> None:
    slow_time = SlowTime(seconds=0.1)
    slow, quick = TimedRegex(r"(?:a|b|ab)*[cd]", slow_time), TimedRegex("[a-z]+", slow_time)
    for text in ("ab" * 60, "c"):
        with pytest.raises(ScoringImpossible, match="took over"):
            slow.findall(text)
    assert quick.findall("c") == ["c"]


@pytest.mark.parametrize("pattern", ["(?:" * 3000 + ")" * 3000, "(" * 3000 + "a*" + ")" * 3000])
def test_a_regex_that_is_nested_too_deeply_is_refused_as_such(pattern: str) -> None:
    filters = [{"name": "deep", "filter": [{"function": "regex", "regex_pattern": pattern}]}]
    with pytest.raises(InvalidScoring, match="nested too deeply"):
        read_filters(json.dumps(filters))
    with pytest.raises(InvalidScoring, match="nested too deeply"):
        read_metric("exact_match", json.dumps({"regexes_to_ignore": [pattern]}))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:x{1000}){1000}",
        r"(?x)(?:x{1000}) {1000}  # a comment",
        r"(?=(?:\b|a){4000}y|(?>a{3000,}+)(b)(?(1)c{2000}?))d{2000}",
        "x{4000000000}",
    ],
)
def test_a_regex_that_would_take_all_memory_is_refused_before_it_is_compiled(pattern: str) -> None:
    with pytest.raises(re.error, match=r"written out it has .* parts, and may have 10,000"):
        TimedRegex(pattern)


@pytest.mark.parametrize(
    "pattern", [r"\d{9999}", r"(?:x{1,1000}){1,1000}", r"(?:a|b{50}){100}c{3000}", "x" * 5000]
)
def test_a_regex_that_repeats_much_is_read(pattern: str) -> None:
    TimedRegex(pattern)


def test_options_that_are_nested_too_deeply_are_refused() -> None:
    nested = "[" * 100_000 + "]" * 100_000
    with pytest.raises(InvalidScoring):
        read_filters(nested)
    with pytest.raises(InvalidScoring):
        read_metric("exact_match", nested)
