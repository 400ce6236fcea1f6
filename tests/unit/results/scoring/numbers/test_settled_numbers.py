"""Numbers among other numbers: steps, corrections, checks, denials, and answers that were cut."""

from fractions import Fraction

import pytest

from services.results.scoring.answer_marks import final_answer
from services.results.scoring.numbers.stated_number import stated_number


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ('{"answer": 8, "result": 7}', 8),
        ("The answer is 28.67, rounded to 2 decimal places.", Fraction(2867, 100)),
        ("29, rounded up from 28.67", 29),
        ("Not 12 but 15.", 15),
        ("$\\boxed{7}$ and $\\boxed{7}$", 7),
        ("답은 70만 원입니다.", 700_000),
        ("\\boxed{7} Hmm, actually 8.", 8),
        ("\\boxed{7}\n\nOops, I made a mistake: the answer is 8.", 8),
        ("\\boxed{7} is actually the number of cows.", 7),
        ("The answer is 7. No wait, it's 8.", 8),
        ("The answer is 7... no, 8.", 8),
        ("You might think it's 7, but it's 8.", 8),
        ("Then 2x + 3 = 19, so 2x = 16 and x = 8.", 8),
        ("$8.0 \\times 10^{2}$ m/s", 800),
        ("\\boxed{\\color{red}{8}}", 8),
        ("<b>8</b>", 8),
        ("4! = 24", 24),
        ("The answer is 8. A common mistake is to answer 7.", 8),
        ("The result is |-5| = 5.", 5),
        ("$|3 - 10| = 7$", 7),
        ("lcm(4, 6) = 12", 12),
        ("\\log_2 8 = 3", 3),
        ("\\begin{align*} x &= 3 + 4 \\\\ &= 7 \\end{align*}", 7),
        ("Area = πr² = 28.27", Fraction(2827, 100)),
        ("There are 2 people that lifted at least 46 pounds.", 2),
        ("There are 6 ways to arrange 3 books.", 6),
        ("The side rounded to 2 decimal places is 3.14.", Fraction(314, 100)),
        ("약 3억", 300_000_000),
    ],
)
def test_the_number_is_the_one_that_is_stated(answer: str, value: Fraction) -> None:
    found = stated_number(answer)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("**Answer:**\n\nTom starts with 24 eggs.\nHe uses 6.\nSo he has 18 eggs left.", 18),
        ("Solution: Tom starts with 24 eggs. He uses 6. So he has 18 eggs left.", 18),
        ("Solution:\n\nThere are 24/4 = 6 boxes.\n\nThe cost is 6*3 = $18.", 18),
        ("答案：首先有24个鸡蛋。用了6个。所以剩下18个。", 18),
        ("Therefore he must read 18 pages a day to finish within 10 days.", 18),
        ("Hence 5! = 120 arrangements are possible.", 120),
        ("42 seats in total, 7 per row.", 42),
        ("The 3 boxes hold 42 balls together.", 42),
        ("There are 3 red, 4 blue, and 5 green balls, 12 in all.", 12),
        ("She has 8 apples, which is 3 more than before.", 8),
        ("Not 12 but 14.", 14),
        ("Dividing 36 by 2, we obtain 18.", 18),
        ("18\n\nHe had 5 and got 13.", 18),
        ("Room 3 250 people", 250),
        ("Train 9 arrives after 35 minutes.", 35),
        ("The result is 12. Subtract 3 from the result to get 9.\nShe has 9 apples.", 9),
        ("3*4=12. Adding 5 to the result is 17. So she has 17-2=15 apples left.", 15),
        ("The solution is 30% acid. So we need 6 liters of pure acid.", 6),
        ("So x = 7.\n\nLet's check: 2(7)+3 = 17.", 7),
        ("So x = 7. Substituting back: 2(7)+3 = 17. Correct.", 7),
        ("So x = 7. Indeed, 2*7+3 = 17.", 7),
        ("5 hundred thousand", 500000),
        ("5 lakhs", 500000),
        ("5 millions", 5000000),
        ("Answer: The total number of apples is 12.", 12),
        ("The answer is 12. Each of the 3 bags holds 4.", 12),
        ("The answer is 12.\n\nExplanation: 3 bags × 4 = 12, and 8 were eaten.", 12),
        ("Answer: 12\n\nWe add 5 and 7.", 12),
        ("The answer is 12. Wait, that's wrong. The answer is 14.", 14),
        ("Answer: 12. Correction: the answer is 14.", 14),
        ("The answer is 12.\n\nActually, I made an error: the answer is 14.", 14),
        ("x + 3 = 10\nx = 7", 7),
        ("3 * 4 = 12\n12 + 5 = 17", 17),
        ("Cost = 5\nTotal = 12", 12),
        ("Step 1: the answer to part 1 is 3.\nStep 2: multiply by 4.\nThe final answer is 12.", 12),
        ("So the answer is 12 apples, which is 3 × 4.", 12),
        ("The sum of 3 and 5 is 8.", 8),
        ("The answer is 18 because 9 * 2 = 18.", 18),
        ("After 5 days, she has 30 - 12 = 18 stickers left.", 18),
        ("Each of the 3 boxes holds 4 eggs, so they hold 3 * 4 = 12 eggs in the 2 days.", 12),
        ("The whole trip takes 40 minutes + 20 minutes = 60 minutes", 60),
        ("In 5 days he will sell 8 cups * $3 = $24.", 24),
        ("The pen was $2 and the pad is $5 so for both Ann pays 2+5 = $7.", 7),
        (
            "Add it to that of the first week to find the final value: $8 + $2 = $10",
            10,
        ),
        ("She needs 5 * 2 = 10 spoons to make 80 rolls.", 10),
        ("He should leave 12 + 5 = 17 minutes before Ann to get there 5 minutes sooner.", 17),
        ("She makes 9 * 2 = $18 per day by selling the other 9 eggs at $2 each.", 18),
        ("So 120 - 80 = 40 of the girls are not in it.", 40),
        ("The number of melons that were not ready is 84-63 =21.", 21),
        ("He pays $1000-($150+$300) = $550.", 550),
        ("1% * 50 = 0.5", Fraction(1, 2)),
        ("He pays 120*.1=$12.", 12),
        ("6 * 7 = <<6*7=42>>42 pens", 42),
        ("$15 / hour * 8 hours/day = $120 / day", 120),
        ("The answer is 3.14, rounded to 2 decimal places.", Fraction("3.14")),
        ("She should leave at the first bell.\nDividing both sides by 4 we get c = 3", 3),
    ],
)
def test_the_number_that_settles_the_question_is_read(answer: str, value: int | Fraction) -> None:
    found = stated_number(final_answer(answer))
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "answer",
    [
        "Some say the answer is 10.",
        "The incorrect answer is 10.",
        "That is 3 + 4 = 7, which is not the answer.",
        "I could not compute 3 + 4 = 7.",
        "The result 3 + 4 = 7 is not correct.",
        "Ann has 3 * 4 = 12 pens for Ben and 5 for Tom.",
        "Ann needs 2 + 3 = 5 eggs to bake and 7 to fry.",
        "Ann has 2 + 3 = 5 pens and Ben has 4 + 4 = 8 pens.",
        "The width is 5 and the length is 2 * 3 = 6.",
        "It takes 132 spoons of flour to make 16 rolls.",
        "The answer is 12.\nThe answer is 13.",
        "If we include the driver, the answer is 12. If not, the answer is 11.",
        "The answer is 12 if you include the driver, or 11 if not.",
        "Cannot be determined from the 3 given facts.",
        "There is not enough information. We know only that y = 5.",
        "As an AI model from 2023, I cannot answer.",
        "It is not 12.",
        "12 is incorrect.",
        "12 is not the answer.",
        "The answer cannot be 7.",
        "The answer is half of 60.",
        "twice 15",
        "5 squared",
        "the square root of 16",
        "10 factorial",
        "at least 5",
        "at most 7",
        "7 or more",
        "$5 M",
        "$5m",
        "$3.2 bn",
        "5 k",
        "2 thirds",
        "x = 5\ny = 7",
        "The solutions are:\nx = 5\nx = -2",
        "a) 5\nb) 6",
        *("Answer 1: 5\nAnswer 2: 6", "Answer 1: 5 Answer 2: 6", "(a) 5 (b) 6", "Q1: 5\nQ2: 7"),
        *("First answer: 5. Second answer: 6.", "Solution 1: x = 4\nSolution 2: x = -4"),
        *("log_2 8", "log2(8)", "2x = 6 and x = 3 or x = 7"),
        *("|-5|", "\\lvert -5 \\rvert", "abs(-5)", "\\boxed{7} Hmm, is that right?"),
        *("The answer is 12. Wait, 12 is not prime.", "The answer is 7. Actually, it's 8 or 9."),
        *("1.200 €", "€1.200", "She is in her late 60s.", "It was in the 1990s."),
        "There are 2 ways with 3 boys and 4 ways with 5 boys",
        "The question has 3 parts.",
        "The width is 5 cm and the length is 6 cm.",
        "The binary is 1100₂",
    ],
)
def test_an_answer_that_settles_nothing_is_unread(answer: str) -> None:
    assert stated_number(final_answer(answer)) is None


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("Answer:\n1. Tom buys 6 boxes.\n2. He pays 18 dollars.", 18),
        ("Lösung: Tom hat 24 Eier. Er braucht 6. Also bleiben 18 Eier.", 18),
        ("The answer is 4.2 buses. Since you can't have part of a bus, they need 5 buses.", 5),
        ("The answer is 10. Wait, that's wrong. It should be 12.", 12),
        ("Answer: 10\n\nActually, let me recompute. 3*4=12. So it's 12.", 12),
        ("#### 10\n\nWait, I made an error. The correct total is 12.", 12),
        ("A common mistake is to say the answer is 10. It's actually 12.", 12),
        ("The answer is 12. (A common wrong answer is 10.)", 12),
        ("So she needs 6 boxes, which cost $36 in total.", 36),
        ("So they split $90, which gives each person $30.", 30),
        ("She earns $18 per day, which is $126 per week.", 126),
        ("There are 12 months in a year, so that makes 12*15=$180, which he then doubles to $360.", 360),
        ("His total income is 500, when adding the bonus it becomes 600.", 600),
        ("The answer is half of 60, which is 30.", 30),
        ("The answer is 4! = 24.", 24),
        ("Answer: 10! / 8! = 90", 90),
        ("Final answer: 12\n\nThe answer to part (a) is 3.", 12),
    ],
)
def test_an_answer_with_a_second_value_is_never_read_as_the_first(answer: str, value: int) -> None:
    found = stated_number(final_answer(answer))
    assert found is None or found.value == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("First, we compute 3 * 4 = 12. Next, we need to add", None),
        ("There are 30 of them in total, so", None),
        ("The answer is 1", None),
        ("Step 1: 12 + 3 = 15\nStep 2: 15 * 2", None),
        ("12", None),
        ("The answer is 12. Each of the bags", 12),
        ("12\nThe bags hold", 12),
        ("#### 12\nNote that", 12),
    ],
)
def test_an_answer_that_was_cut_is_read_only_where_it_was_stated_before(
    answer: str, value: int | None
) -> None:
    found = stated_number(final_answer(answer), is_cut=True)
    assert (None if found is None else found.value) == value
