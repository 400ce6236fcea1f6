"""The expression that an answer states, in prose and by itself."""

import pytest

from proctor.values.outcome import Answer
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.scoring.answer_marks import final_answer
from services.results.scoring.answer_rules import MAX_EXPRESSION, Judgement, SameExpression
from services.results.scoring.compiled_scoring import compile_scoring, read_metric
from services.results.scoring.expressions.stated_expression import StatedExpression, stated_expression
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import check_target

STATED = [
    (r"The area is $\boxed{\frac{\pi}{6}}$.", r"\frac{\pi}{6}"),
    (r"So \boxed{\frac{1}{\sqrt{\frac{1}{2}}}}", r"\frac{1}{\sqrt{\frac{1}{2}}}"),
    (r"The answer is $\frac{1}{2}$.", r"\frac{1}{2}"),
    (r"The answer is \(x = 5\).", "x = 5"),
    ("**Answer:** $(1, 2)$", "(1, 2)"),
    ("Answer: 3/4", "3/4"),
    ("The final answer is 3.5.", "3.5"),
    ("Final Answer: The final answer is $x^2+1$. I hope it is correct.", "x^2+1"),
    ("The answer is $x=1$ or $x=-2$.", "x=1, x=-2"),
    (r"\boxed{1} and \boxed{2}", "1, 2"),
    (r"First \boxed{1}. But then, correcting the sign, we have the answer \boxed{2}", "2"),
    (r"$\frac12$", r"\frac12"),
    ("3/4", "3/4"),
    ("x = 5", "x = 5"),
    (r"Thus the probability is $\frac{3}{8}$.", r"\frac{3}{8}"),
    ("We have $a=2$ and $b=3$, so the value of $a+b$ is $5$.", "5"),
    ("Therefore, $x = 7$. Let me know if you need $more$ help!", "x = 7"),
    ("The answer is $18.90.", "$18.90"),
    ("#### 72", "72"),
    (r"The set is \[ \{1, 2\} \]", r"\{1, 2\}"),
    ("$$\n\\begin{pmatrix}1\\\\2\\end{pmatrix}\n$$", r"\begin{pmatrix}1\\2\end{pmatrix}"),
    (r"答案是 $\frac{1}{2}$。", r"\frac{1}{2}"),
    ("The answer is $5$ million.", r"5 \text{million}"),
    ("The answer is 5 cm.", "5 cm"),
    ("So the total is 3/4.", "3/4"),
    ("The solutions are $x=2$ and $x=3$.", "x=2, x=3"),
    ("The answer is $5$ because $2+3=5$.", "5"),
    ("Answer: $\\frac{1}{2}$\n\nExplanation: half of $1$ is $\\frac12$.", r"\frac{1}{2}"),
    ("We get 5.\n\n**Final Answer**\n\n$\\boxed{5}$", "5"),
    ("The value of $f(3)$ is $9$.", "9"),
    (r"The domain is $(-\infty, 3]$.", r"(-\infty, 3]"),
    ("Answer: $x$", "x"),
    ("The answer is $A$. Since it is $A$.", "A"),
    ("The answer is about $3$ or $4$.", "3, 4"),
]
UNREAD = [
    "I cannot determine the answer.",
    "The cost is $5 and then $6 more.",
    "So the answer is not $5$.",
    "Some students say the answer is $4$.",
    "Is the answer $4$?",
    "Let $x$ be the number. Then we solve.",
    "I think it is about right.",
    r"\boxed{5",
    r"The answer is $\frac12$. Wait, that is wrong.",
    "hence the range is all real numbers except $2$.",
]


def judged(answer: str, target: str, *, is_cut: bool = False) -> Judgement:
    return SameExpression().judge(answer, (target,), is_cut=is_cut)


@pytest.mark.parametrize(("answer", "expression"), STATED)
def test_a_stated_expression_is_read(answer: str, expression: str) -> None:
    assert stated_expression(final_answer(answer)) == StatedExpression(expression)


@pytest.mark.parametrize("answer", UNREAD)
def test_an_answer_that_states_none_is_unread(answer: str) -> None:
    assert stated_expression(final_answer(answer)) is None
    assert judged(answer, "5") == Judgement(None)


def test_words_are_read_only_where_they_are_the_target() -> None:
    assert judged("The answer is Evelyn.", r"\text{Evelyn}") == Judgement("Evelyn", is_right=True)
    assert judged("The answer is Angela.", r"\text{Evelyn}") == Judgement(None)
    assert judged("The answer is unclear.", "5") == Judgement(None)
    assert judged(r"\boxed{\text{Angela}}", r"\text{Evelyn}") == Judgement(r"\text{Angela}")


def test_the_conclusion_of_an_answer_that_was_cut_is_not_read() -> None:
    step = r"The area is $2x$, so the width is $x = 4$"
    assert judged(step, "4") == Judgement("x = 4", is_right=True)
    assert judged(step, "4", is_cut=True) == Judgement(None)
    assert judged("The answer is $12", "12", is_cut=True) == Judgement(None)
    assert judged(r"It is \boxed{4}, for", "4", is_cut=True) == Judgement("4", is_right=True)


def test_what_the_parser_does_not_know_is_unparsed_and_equal_only_to_itself() -> None:
    unknown = r"\begin{cases} 1 \\ 2 \end{cases}"
    assert judged(rf"\boxed{{{unknown}}}", "1") == Judgement(None)
    assert judged(rf"\boxed{{{unknown}}}", unknown).is_right
    with pytest.raises(ScoringImpossible, match="no expression that can be read"):
        judged(r"\boxed{1}", unknown)


def test_a_long_expression_is_not_parsed() -> None:
    assert judged(r"\boxed{" + "+".join("1" * MAX_EXPRESSION) + "}", "1") == Judgement(None)


def test_any_of_several_targets_is_right_and_a_target_may_be_a_whole_solution() -> None:
    rule = SameExpression()
    assert rule.judge(r"\boxed{\frac12}", ("3", "0.5")).is_right
    assert rule.judge("Answer: 1/2", (r"Half of one is \boxed{\frac{1}{2}}.",)).is_right


def test_an_empty_target_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(ScoringImpossible, match="names no expression"):
        check_target(read_metric("math", ""), ScoringTarget(texts=(" ",)))
    check_target(read_metric("math", ""), ScoringTarget(texts=(r"\frac12",)))


def test_an_answer_is_scored_and_shows_the_expression_that_was_read() -> None:
    scoring = compile_scoring(TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("math"),)))
    assert scoring.quick_characters < 0
    target = ScoringTarget(texts=(r"\frac{\pi}{6}",))
    right = score_answer(scoring, target, Answer(r"<think>\boxed{1}</think>So \boxed{\pi/6}."))
    wrong = score_answer(scoring, target, Answer("The answer is $6$."))
    unread = score_answer(scoring, target, Answer("I do not know."))
    assert [one.scores["math"] for one in (right, wrong, unread)] == [1.0, 0.0, 0.0]
    assert [one.prediction for one in (right, wrong, unread)] == [r"\pi/6", "6", ""]
    assert [one.is_unparsed for one in (right, wrong, unread)] == [False, False, True]
