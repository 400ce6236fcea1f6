"""Plain answers in the styles of chat models: nine of ten are read, and none as another choice."""

from services.results.scoring.choices.reading import named_choice

# By choices and the label that is meant; " | " parts the answers, and "~" is the end of a line.
PLAIN: list[tuple[tuple[str, ...], int, str]] = [
    (
        ("Paris", "London", "Rome", "Berlin"),
        1,
        r"""
        B | B. | (B) | b | B) | **B** | `B` | B) London | B. London | (B) London | **B) London** |
        **B. London** | B: London | London | London. | **London** | "London" | London (B) | London |
        London | Option B | Answer: B | Answer: (B) | **Answer: B** | **Answer:** B) London |
        Answer: London | Final answer: B | Final Answer: **London** | The answer is B. | The answer
        is (B). | The answer is London. | The answer is: B | The correct answer is B. | The correct
        answer is (B) London. | The correct answer is **B) London**. | The correct answer is: **B.
        London** | The correct option is B. | The best answer is (B). | So the answer is B. |
        Therefore, the answer is B. | Thus, the correct answer is (B) London. | \boxed{B} |
        $\boxed{B}$ | The answer is $\boxed{B}$. | \boxed{\text{London}} | <think>Paris?
        No.</think>B | <think>~It may be Paris or Rome.~</think>~~The answer is London. |
        </think>~~**B** | I would choose B. | I choose London. | I'd go with B. | B is correct. | B
        is the correct answer. | Option B is correct. | London is the correct answer. | {"answer":
        "B"} | ```json~{"answer": "London"}~``` | <answer>B</answer> | It is London. | It's London.
        | The answer is B. London is the capital of England. | B. London is the capital of England.
        | London. It is the capital of England. | B) London~~London is the capital and largest city
        of England. | **B) London**~~Explanation: The capital of England is London. | London is the
        capital. Paris is in France, Rome in Italy.~~Answer: B | Let's think step by step. The
        question asks for the capital of England. Paris is the capital of France. So the answer is
        B. | Let's go through the options:~A) Paris is in France.~B) London is in England.~C) Rome
        is in Italy.~~The correct answer is B) London. | Step 1: find the country.~Step 2: England's
        capital is London.~~Final answer: B | The capital of England is London. | B~~Explanation:
        London has been the capital for ages. | Answer: B~Explanation: England's capital city is
        London. | Answer: B because London is in England. | London, because it is the capital of
        England. | Based on the passage, the answer is London. | The answer to the question is
        London. | Looking at each option carefully.~~**Answer: B) London** | B~~Question: What is
        the capital of France?~Answer: A | London~~Question: Where is the Louvre?~Answer: Paris | In
        conclusion, the correct answer is London. | B. London~~Paris is the capital of France, Rome
        is the capital of Italy and Berlin is the capital of Germany. | I would say B: London
        """,
    ),
    (
        ("A", "B", "C", "D"),
        2,
        r"""
        C | C. | (C) | **C** | The answer is C. | Answer: C | C. 42 | C) 12 metres | (C) Rome | The
        correct answer is (C) Rome. | The correct answer is C) 42. | Answer: C. Mitochondria |
        C~~The mitochondria are the powerhouse of the cell. | The answer is C: the mitochondria. |
        We compute 6 x 7 = 42. Thus the answer is C. | \boxed{C} | The correct answer is **C**.~~The
        work done equals the force times the distance. | Option C is correct because energy is
        conserved.
        """,
    ),
    (
        ("no", "yes"),
        1,
        r"""
        yes | Yes | Yes. | **Yes** | yes | Yes, because the passage says so. | Yes. The passage
        states that it is a fruit. | Yes, it is. | Yes, the passage says so. | Answer: yes | The
        answer is yes. | The answer is **Yes**. | Yes~~The passage mentions this in the first
        paragraph. | Yes – the passage says it clearly. | Based on the passage, the answer is yes. |
        yes~Passage: foo~Question: is bar~Answer: no | So the answer is yes. | The passage says it
        is open. Therefore, the answer is yes. | Yes, this is correct.
        """,
    ),
    (
        ("no", "yes"),
        0,
        r"""
        No | no. | No, it is not. | No. The passage does not say that. | No, because there is no
        such thing. | No, there is no evidence of that. | The answer is no. | **No.** The words have
        different meanings in the two sentences. | No, they are used in different senses.
        """,
    ),
    (
        ("True", "False"),
        0,
        r"""
        True | true | True. | The statement is true. | The answer is True. | True. The premise says
        exactly this. | **True**~~The text confirms it. | It is true. | The hypothesis is true.
        """,
    ),
    (
        ("True", "False"),
        1,
        r"""
        False | False. The premise does not mention it. | The answer is: False | The statement is
        false because the passage says he was at work. | The claim is false.
        """,
    ),
    (
        ("entailment", "not entailment"),
        0,
        r"""
        entailment | Entailment | Entailment. | The answer is entailment. | Label: entailment | The
        relationship is entailment.
        """,
    ),
    (
        ("entailment", "not entailment"),
        1,
        r"""
        not_entailment | not entailment | Not entailment. | The answer is not_entailment. |
        **not_entailment**~~The premise does not mention Paris.
        """,
    ),
    (
        ("entailment", "neutral", "contradiction"),
        1,
        r"""
        neutral | Neutral | Neutral. | The relationship is neutral. | The relation between the
        premise and the hypothesis is neutral. | neutral~~The premise says nothing about the colour.
        | Answer: Neutral | Neutral. The premise does not say where he went. | The answer is neutral
        because the premise does not say so. | The premise does not specify the colour.~~Neutral
        """,
    ),
    (
        ("negative", "positive"),
        0,
        r"""
        negative | negative | Negative | negative~~Review: a fine film.~Sentiment: positive | The
        sentiment is negative. | Sentiment: negative | The review is negative. | The sentiment of
        the review is negative. | **Negative** | negative. The reviewer found it boring.
        """,
    ),
    (
        ("yes", "no", "maybe"),
        2,
        r"""
        maybe | Maybe. | The answer is maybe. | Maybe. The results were mixed. | maybe~~The abstract
        reports mixed results.
        """,
    ),
    (
        ("3", "4", "5", "12"),
        3,
        r"""
        12 | 12. | The answer is 12. | \boxed{12} | $12$ | **12** | Answer: 12 | 3 x 4 = 12.~~The
        answer is 12. | (D) 12 | The answer is D.
        """,
    ),
    (
        (
            "The man went home.",
            "The man slept on the sofa, since he was tired.",
            "He sang.",
            "None of the above",
        ),
        1,
        r"""
        The man slept on the sofa, since he was tired. | The man slept on the sofa, since he was
        tired | B | (B) The man slept on the sofa, since he was tired. | The answer is: The man
        slept on the sofa, since he was tired.
        """,
    ),
    (
        (
            "The man went home.",
            "The man slept on the sofa, since he was tired.",
            "He sang.",
            "None of the above",
        ),
        3,
        r"""
        D | None of the above | None of the above. | D) None of the above
        """,
    ),
    (
        ("unacceptable", "acceptable"),
        1,
        r"""
        acceptable | Acceptable. | The sentence is acceptable. | Answer: acceptable
        """,
    ),
    (
        ("Ja", "Nein"),
        1,
        r"""
        Nein | Nein. | Die Antwort ist Nein. | Antwort: Nein
        """,
    ),
    (
        ("北京", "上海"),
        0,
        r"""
        北京 | 北京。 | 答案是北京。 | 答案:A | 答案是A。
        """,
    ),
    (
        ("はい", "いいえ"),
        1,
        r"""
        いいえ | 答えはいいえです。 | 答えは「いいえ」です
        """,
    ),
]


def test_nine_of_ten_plain_answers_are_read_and_none_as_another_choice() -> None:
    answers = [
        (" ".join(text.split()).replace("~", "\n"), choices, label)
        for choices, label, texts in PLAIN
        for text in texts.split(" | ")
    ]
    labels = [(named_choice(text, choices), label) for text, choices, label in answers]
    assert len(answers) > 200
    assert sum(named == label for named, label in labels) >= 0.9 * len(answers)
    assert all(named in (label, None) for named, label in labels)
