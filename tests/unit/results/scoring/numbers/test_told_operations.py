"""Answers that tell how a number is computed: read by what comes out, unread where nothing does."""

import time

import pytest

from services.results.scoring.answer_marks import final_answer
from services.results.scoring.numbers.stated_number import stated_number


@pytest.mark.parametrize(
    "answer",
    [
        "Mia has 6 boxes of 8 pens. To find the pens, we multiply the boxes by the pens in each.",
        "The bus costs $18 and lunch costs $7. Adding these two amounts gives us the price of the trip.",
        "Each row has 12 seats. Then, we divide the number of guests by 12.",
        "He has 45 marbles. Finally, subtract the marbles that he lost to find out how many are left.",
        "The garden needs 90 plants. We divide them by the rows, which is 6. This gives us the plants a row.",
        "They walk 3 km a day. To find the distance in 14 days, multiply the daily distance by 14.",
        "The first shelf holds 20 books, the second 31. The total is the sum of both shelves.",
        "One side is 25. We set both sides equal to each other and solve for n.",
        "She earns $15 an hour. Therefore, we need to calculate her pay and add the bonus of $40 to it.",
        "In 5 years, the new height will be the height today (32) plus the 11 cm of growth.",
        "The shop has 9 crates. We need to consider every crate to find the weight.",
        "The price of the set is $60. Since he spent it all, he has no money left.",
        "He had 8 plums and ate 8, so none are left.",
        "We need to find 3 numbers.",
        "We need to add 5 minutes to the walk of 20 minutes.",
        "There are 14 pears. Let's find the number of plums.",
        "3 boxes.\nEach holds 4 pens. We multiply 3 by 4.",
        "That cannot exceed 24.",
        "5.444 rounds to 2 decimals.",
        "As we need 3 boxes, and have 2, there is more to do.",
    ],
)
def test_an_operand_is_no_result(answer: str) -> None:
    assert stated_number(final_answer(answer)) is None


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("Finally, we add both shelves to find the total number of books: 20 + 31 = 51 books.", 51),
        ("Then divide the cost by 4 to find the price of one: $36 / 4 = $9.", 9),
        ("We divide 96 by 8 to get 12 pages.", 12),
        ("So, we divide 75 by 6, which equals 12.5 metres.", 12.5),
        ("Multiply the 7 days by 3, which is 21.", 21),
        ("Adding these up, the three friends picked 175 apples.", 175),
        ("We multiply by 100, resulting in 35%.", 35),
        ("$14. We add 6 to 8.", 14),
        ("In total, we found 15 solutions.", 15),
        ("I calculated the total as 36 hours.", 36),
        ("The area was calculated as 20.", 20),
        ("You should start with 5 mg.", 5),
        ("You need to add 15 tiles to complete the row.", 15),
        ("He pays 5 × 12 = 60 dollars, found by multiplying hours by the rate.", 60),
        ("The area is 12 square metres (length multiplied by width).", 12),
        ("Then multiply by 6 → 42.", 42),
        ("Dividing 36 by 4, each child receives 9 sweets.", 9),
        ("By adding 5 and 7, you end up with 12.", 12),
        ("As nobody rides half a bus, we round 5.4 up to 6.", 6),
        ("$38\n\nWe subtract 12 from 50.", 38),
        ("The 30 boxes weigh 18 kg each, which gives 540 kg.", 540),
    ],
)
def test_what_comes_out_of_an_operation_is_read(answer: str, value: float) -> None:
    read = stated_number(final_answer(answer))
    assert read is not None
    assert float(read.value) == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("Therefore, she has to sell 6 tickets to get 5 points in total.", 6),
        ("So it would take Ben 12 minutes to read 10 pages.", 12),
        ("Thus, he needs a score of 98 to get an average of 93.", 98),
        ("The chance is 3/12 = 1/4 or 25%.", 25),
        ("So 700/1000 = 0.7 or 70% of them pass.", 70),
        ("150 * 0.93 = 138.915, which rounds to $139.", 139),
        ("As each kilogram costs $3, the whole sack would be $60.", 60),
        ("Since it is a Friday, entry costs $10, so she can go in 2 more times.", 2),
        ("Money = $2 + $16 = $18\n\nStep 3: Find what is missing.\nMissing = $25 - $18 = $7", 7),
        ("Cost of hay = $24\n\nChange = $30 - $24\nChange = $6", 6),
        ('{"answer": "Ann will pay $12.00 for 5 pens and 5 pads."}', 12),
        ("The final value of all of it is 8 shares * $9 per share = $72.", 72),
        ("Since he has 64 eggs, the number of eggs that cannot be packed is 64 - 48 = 16.", 16),
        ("Apples 12", 12),
        ("Kilometers 18", 18),
        ("Respuesta 18", 18),
        ("Ann needs 5 more and Bob needs 7 more, so together they need 12 more.", 12),
        ("Ann receives $20 and Bob receives $30, so Bob receives $10 more.", 10),
        ("The total is $12,\nsince each ticket costs $3.", 12),
        ("She pays $12 for 2 shirts and 3 hats.", 12),
        ("The answer (arabic numerals) is 50. There were 12 more boxes than 8.", 50),
    ],
)
def test_the_conclusion_of_a_solution_is_read(answer: str, value: float) -> None:
    read = stated_number(final_answer(answer))
    assert read is not None
    assert float(read.value) == value


@pytest.mark.parametrize(
    "answer",
    [
        "Finally, Rita jumps 1 spot ahead and finishes in 6th place.",
        "Sam gets 20 feet of rope, and Harry gets 80 feet.",
        "In total, she needs 3 red pens and 3 blue pens.",
        "The worker makes 400 - 240 = 160 toys in 10 hours, or 16 toys an hour.",
        "3 hundred and forty one",
        "Therefore she sells 6 tickets to raise $30, or 12 tickets to raise $60.",
        "So it costs $6 to make 15 flans, a profit of $9.",
        "He is paid $40 for 5 hours and spends 12 of it.",
        "Ann has 5 and Bob has 7, so Ann has 5 and Bob has 7.",
        "The pump fills 30 litres an hour. In 4 hours it would fill 120 litres, and that means that the",
        "The answer (as a number) is 50. However, the discount of $5 counts as well.",
    ],
)
def test_what_has_no_plain_conclusion_is_unread(answer: str) -> None:
    assert stated_number(final_answer(answer)) is None


@pytest.mark.parametrize(
    "answer",
    [
        "We have 5. " + "no " * 20_000,
        "We have 5. " + "so no " * 300,
        "5" + ", found by x" * 5_000,
        "The answer is $5 for 2 " + "or $5 for 2, " * 5_000,
        "So he needs 5 " + "to get or " * 5_000,
    ],
    ids=["no", "so", "found by", "prices", "purposes"],
)
def test_answers_of_models_that_lost_themselves_take_no_time(answer: str) -> None:
    began = time.process_time()
    stated_number(answer)
    assert time.process_time() - began < 2
