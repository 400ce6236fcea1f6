"""Prompts of tasks with complex templates for rows of our own making, to the letter."""

from proctor.values.sample import Target
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.contract.suites.test_suite_files import asked
from tests.reference.evaluated_tasks import suites

TRUTHFULQA_END = "A: The 1992 Olympics were held in Barcelona, Spain.\n\nQ: Do cats fly?"


def ends_of(sample: RenderedSample) -> list[str]:
    return [choice.rpartition("\n")[2] for choice in sample.choices]


def test_copa_drops_the_full_stop_and_continues_after_two_spaces() -> None:
    sample = asked("superglue", "copa")
    assert sample.prompt.as_text == "The cup broke because"
    assert sample.choices == ("  it fell down.", '  ann\'s "cup" was full.')


def test_multirc_takes_no_for_the_right_choice_of_a_right_answer_as_the_reference_does() -> None:
    sample = asked("superglue", "multirc")
    assert sample.prompt.as_text == "Ann ate. Bob slept.\nQuestion: Who ate?\nAnswer:"
    assert ends_of(sample) == ["Is the answer correct? yes", "Is the answer correct? no"]
    assert (sample.target.choice, sample.cluster) == (1, "")


def test_multirc_corrected_takes_yes_for_it_and_keeps_the_answers_of_a_paragraph_together() -> None:
    sample = asked("multirc_corrected", "multirc_corrected")
    assert sample.choices[1] == ' It\'s "Ann"\nIs the answer correct? yes'
    assert ends_of(sample) == ["Is the answer correct? no", "Is the answer correct? yes"]
    assert (sample.target.choice, sample.cluster) == (1, "7")


def test_record_weighs_sentences_and_holds_the_entity_against_the_answers() -> None:
    sample = asked("superglue", "record")
    assert sample.prompt.as_text == ("Ann met Bob's aunt in Rome\n\n  - Ann likes Rome.\n  - Bob does not.\n")
    assert sample.choices == (
        "   - Ann said 'no' to \"her\"",
        "   - Bob's aunt said 'no' to \"her\"",
        "   - Rome said 'no' to \"her\"",
    )
    assert sample.target == Target(
        choice=0, texts=("Ann", "Bob's aunt"), choice_texts=("Ann", "Bob's aunt", "Rome")
    )
    assert sample.cluster == "3"


def test_wsc_marks_the_pronoun_where_it_stands() -> None:
    assert asked("superglue", "wsc").prompt.as_text == (
        'Passage: Ann said"hello, Bob (a friend)", so *he* didn\'t go.\n'
        'Question: In the passage above, does the pronoun "*he*" refer to "*Bob*"?\n'
        "Answer:"
    )


def test_pubmedqa_puts_its_contexts_below_one_another() -> None:
    sample = asked("medical", "pubmedqa")
    assert sample.prompt.as_text == "Abstract: Mice ran.\nMice slept.\nQuestion: Do mice run?\nAnswer:"
    assert sample.target.choice == 2


def test_medical_questions_list_their_choices_by_letter() -> None:
    listed = "A. a\nB. b\nC. c\nD. d\nAnswer:"
    assert asked("medical", "medqa_4options").prompt.as_text == f"Question: Which bone?\n{listed}"
    assert asked("medical", "medmcqa").prompt.as_text == f"Question: Which bone?\nChoices:\n{listed}"
    assert asked("medical", "medmcqa").choices == (" A", " B", " C", " D")


def test_arc_weighs_the_texts_of_its_choices() -> None:
    sample = asked("arc", "arc_challenge")
    assert sample.prompt.as_text == "Question: What melts?\nAnswer:"
    assert sample.choices == (" ice", " stone's heat", ' "fire"')
    assert sample.target.choice == 0


def test_mmlu_is_asked_by_letter_by_text_and_in_words() -> None:
    listed = "What is two and two?\nA. 3\nB. 4\nC. 5\nD. 22\nAnswer:"
    heading = "The following are multiple choice questions (with answers) about world religions.\n\n"
    weighed = asked("mmlu", "mmlu_world_religions")
    assert (
        weighed.prompt.as_text == asked("mmlu_generative", "mmlu_world_religions_generative").prompt.as_text
    )
    assert (weighed.prompt.as_text, weighed.choices) == (heading + listed, (" A", " B", " C", " D"))
    continued = asked("mmlu_continuation", "mmlu_world_religions_continuation")
    assert continued.prompt.as_text.endswith(
        "about world religions.\n\nQuestion: What is two and two?\nAnswer:"
    )
    assert continued.choices == (" 3", " 4", " 5", " 22")
    assert asked("mmlu_generative", "mmlu_world_religions_generative").target.texts == ("B",)


def test_truthfulqa_mc1_has_one_right_choice_and_mc2_all_of_them() -> None:
    mc1, mc2 = asked("truthfulqa", "truthfulqa_mc1"), asked("truthfulqa", "truthfulqa_mc2")
    assert mc1.prompt.as_text.startswith("Q: What is human life expectancy in the United States?\nA: Human")
    assert mc1.prompt.as_text.endswith(f"{TRUTHFULQA_END}\nA:")
    assert mc2.prompt.as_text == mc1.prompt.as_text
    assert mc1.target == Target(choice=0)
    assert mc2.target.right_choices == (1, 2)


def test_truthfulqa_gen_holds_what_is_said_against_right_and_wrong_answers() -> None:
    sample = asked("truthfulqa", "truthfulqa_gen")
    assert sample.prompt.as_text.endswith(TRUTHFULQA_END)
    assert sample.target == Target(
        texts=("No.", "They don't.", "I have no comment."), wrong_texts=('"Yes".', "They do.")
    )


def test_stsb_expects_a_number_without_the_noise_of_its_storage() -> None:
    sample = asked("glue", "stsb")
    assert sample.prompt.as_text.startswith(
        "Sentence 1: A cat sat.\nSentence 2: An animal sat.\nQuestion: How similar"
    )
    assert sample.target.texts == ("3.8",)
    assert asked("glue", "stsb", shots=1).prompt.as_text.partition("Answer:")[2].startswith(" 3.8\n\n")


def test_gsm8k_reads_its_answers_strictly_and_flexibly() -> None:
    task = suites().suite("gsm8k").task("gsm8k")
    assert asked("gsm8k", "gsm8k").prompt.as_text == "Question: What is 2 + 2?\nAnswer:"
    assert '"strict-match"' in task.scoring.filters_json
    assert '"flexible-extract"' in task.scoring.filters_json
    assert task.generation is not None
    assert task.generation.until == ("Question:", "</s>", "<|im_end|>")


def test_humaneval_is_continued_and_executed_as_the_reference_does() -> None:
    sample = asked("humaneval", "humaneval")
    assert sample.prompt.as_text.startswith("def twice(n: int)")
    assert sample.prompt.as_text.endswith('    4\n    """\n')
    check = sample.code_check
    assert check is not None
    assert check.program("    return 2 * n\n") == (
        f"{sample.prompt.as_text}    return 2 * n\n\n\n\n"
        "def check(candidate):\n    assert candidate(3) == 6\n\n\ncheck(twice)"
    )


_MBPP_END = (
    "[DONE]\n\nYou are an expert Python programmer, and here is your task: Write a function to double a "
    "number. Your code should pass these tests:\n\n"
    "assert twice(1) == 2\nassert twice(2) == 4\nassert twice(3) == 6\n[BEGIN]\n"
)


def test_mbpp_shows_solutions_and_executes_tests_as_the_reference_does() -> None:
    sample = asked("mbpp", "mbpp", shots=3)
    prompt = sample.prompt.as_text
    assert prompt.endswith(_MBPP_END)
    assert prompt.count("[BEGIN]\n") == 4
    assert "\n[BEGIN]\ndef similar_elements(test_tup1, test_tup2):\r\n  res = tuple(" in prompt
    assert (
        "heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],5)==[85, 75, 65, 58, 35]\n[BEGIN]\n"
        in prompt
    )
    check = sample.code_check
    assert check is not None
    assert check.program("CODE") == "CODE\nassert twice(1) == 2\nassert twice(2) == 4\nassert twice(3) == 6"
