"""Reasoning and answer of a model's plain text: what is set apart, and what only mentions a mark."""

import time

import pytest

from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import with_reasoning_apart
from proctor.values.reasoning.separate import separate_reasoning
from proctor.values.reasoning.separated_text import SeparatedText
from tests.fakes.thorough_cases import first_cases

HARMONY = "<|channel|>analysis<|message|>Red? No.<|end|><|start|>assistant<|channel|>final"

HEADS = ("<|start_header_id|>think<|end_header_id|>", "<|start_header_id|>assistant<|end_header_id|>")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Is it red? No.</think> Blue", "Blue"),
        ("\n<THINK>\nRed?\n</THINK>\n\nBlue\n", "Blue"),
        ("<thinking>Red?</thinking>Blue", "Blue"),
        ("<thought>\nRed?\n</thought>\n\nBlue", "Blue"),
        ("<reasoning>Red?</reasoning>Blue", "Blue"),
        ("<seed:think>Red?</seed:think>Blue", "Blue"),
        ("<think:opensource>Red?</think:opensource>Blue", "Blue"),
        ("<longcat_think>Red?</longcat_think>Blue", "Blue"),
        ("[THINK]Red?[/THINK]Blue", "Blue"),
        ("<thinking>Red?</thinking>\n<output>\nBlue\n</output>", "Blue"),
        ("<output>Blue</output>", "<output>Blue</output>"),
        ("◁think▷Red?◁/think▷Blue", "Blue"),
        ('<think time="3">Red?</think>Blue', "Blue"),
        ("<thought_process>Red?</thought_process>Blue", "Blue"),
        ("<thinking_process>Red?</thinking_process>Blue", "Blue"),
        ("<inner_monologue>Red?</inner_monologue>Blue", "Blue"),
        ("<reason>Red?</reason>Blue", "Blue"),
        ("<antThinking>Red?</antThinking>Blue", "Blue"),
        ("<think_fast>Red?</think_fast>Blue", "Blue"),
        ("<think>Red?</think >Blue", "Blue"),
        ("<think>Red?<\\/think>Blue", "Blue"),
        ("<|thought|>Red?<|/thought|>Blue", "Blue"),
        ("<|think_start|>Red?<|think_end|>Blue", "Blue"),
        ("<|begin_of_reasoning|>Red?<|end_of_reasoning|>Blue", "Blue"),
        ("<\uff5cbegin\u2581of\u2581thinking\uff5c>Red?<\uff5cend\u2581of\u2581thinking\uff5c>Blue", "Blue"),
        ("<|START_THINKING|>Red?<|END_THINKING|>Blue", "Blue"),
        ("<start_working_out>Red?<end_working_out>Blue", "Blue"),
        ("<|im_start|>think\nRed?\n<|im_start|>answer\nBlue", "Blue"),
        ("<|im_start|>think\nRed?<|im_end|>\n<|im_start|>answer\nBlue<|im_end|>", "Blue"),
        ("<|im_start|>think\nRed?\n<|im_end|>\n<|im_start|>assistant\n Blue<|im_end|>", "Blue"),
        ("<|im_start|>think\nRed?<|im_end|>\nBlue", "Blue"),
        ("<|im_start|>assistant\n<|im_start|>thinking\nRed?<|im_end|><|im_start|>answer\nBlue", "Blue"),
        (f"{HEADS[0]}\nRed?<|eot_id|>{HEADS[1]}\n\nBlue<|eot_id|>", "Blue"),
        ("<think>Red?</think><|start_header_id|>assistant<|end_header_id|>\n\nBlue", "Blue"),
        ("[INST]<think>Red?</think>Blue", "Blue"),
        ("<\uff5cAssistant\uff5c><think>Red?</think>Blue", "Blue"),
        ("<|channel|>analysis<|message|>Red?<|end|><|start|>assistant<|message|>Blue", "Blue"),
        ("<|channel|>analysis<|message|>Red?<|end|>Blue", "Blue"),
        ("<|thought|>Red?<|answer|>Blue", "Blue"),
        ("<|begin_of_thought|>Red?<|begin_of_solution|>Blue<|end_of_solution|>", "Blue"),
        ("<|think|>Red?<|/think|>Blue", "Blue"),
        ("<|inner_prefix|>Red?<|inner_suffix|>Blue", "Blue"),
        ("<|im_start|>assistant\n<think>Red?</think>Blue", "Blue"),
        ("<think>\n\n</think>\n\nBlue", "Blue"),
        (HARMONY + "<|message|>Blue<|return|>", "Blue"),
        (HARMONY + ' <|constrain|>json<|message|>{"colour": "blue"}<|return|>', '{"colour": "blue"}'),
        ("<|channel|>final<|message|>Blue", "Blue"),
        ("Red? No.<|end|><|start|>assistant<|channel|>final<|message|>Blue", "Blue"),
        ("analysisIs it red? No, blue.assistantfinalBlue", "Blue"),
        ("analysisRed?\nNo.assistantcommentaryHm. assistantfinal**Blue**", "**Blue**"),
        ("It may be red. No.assistantfinalBlue", "Blue"),
        ("assistantanalysisIs it red? No.assistantfinalBlue", "Blue"),
        ("analysis\nIs it red? No.\n\nassistantfinal\nBlue", "Blue"),
        ("assistantfinalBlue", "Blue"),
        ("analysis<|message|>Red?<|end|><|start|>assistant<|channel|>final<|message|>Blue<|return|>", "Blue"),
        ("final<|message|>Blue<|return|>", "Blue"),
        ("&lt;think&gt;\nRed?\n&lt;/think&gt;\n\nBlue", "Blue"),
        ("Is it red?\n&lt;/think&gt;\nBlue", "Blue"),
        ("<think>Red?&lt;/think&gt;Blue", "Blue"),
        ("\\u003cthink\\u003eRed?\\u003c/think\\u003eBlue", "Blue"),
        ("<|START_THINKING|>Red?<|END_THINKING|><|START_RESPONSE|>Blue<|END_RESPONSE|>", "Blue"),
        ("Red?<|END_THINKING|><|START_RESPONSE|>Blue", "Blue"),
        ("<|begin_of_thought|>Red?<|end_of_thought|><|begin_of_solution|>Blue<|end_of_solution|>", "Blue"),
        ("<think>Red</think><response>Blue</response>", "Blue"),
        ("Here is my thought process: red? Here is my response: Blue", "Blue"),
        ("thought\nIs it red?\nNo.\nBlue", "Blue"),
        ("thought\nIs it red?\n```python\nblue()\n```", "```python\nblue()\n```"),
        ("<|channel>thought\nRed?<channel|>Blue", "Blue"),
        ("<think>Red?</think>\n<|begin_of_box|>Blue<|end_of_box|>", "Blue"),
        ("The colour is <|begin_of_box|>blue<|end_of_box|>.", "blue"),
        ("I say red. No. </think> Blue", "Blue"),
        ("Is it red?\n[/THINK]\nBlue", "Blue"),
        ("<think>Red?</think>\n<think>No.</think>\nBlue", "Blue"),
        ("<think>Red?</think>Let me look again.<think>No.</think>Blue", "Blue"),
        ("<think><reflection>Red?</reflection> No.</think>Blue", "Blue"),
        ("<think>Red?</thinking>Blue", "Blue"),
        ("<think>Red?</think>Blue</think>Blue", "Blue"),
        ("Well. <think>Is it red? No.</think> Blue", "Blue"),
        ("Well,\n<think>\nRed?\n</think>\nBlue", "Blue"),
        ("<think>They ask about `</think>`.</think>Blue", "Blue"),
        ("<think>Draft:\n```python\nred()</think>\n```python\nblue()\n```", "```python\nblue()\n```"),
        ("<think>Four spaces.</think>\n\n    return blue", "    return blue"),
        ('<think>I say "red". No: "blue"</think>"Blue"', '"Blue"'),
        ("<think>It's `red`? No: `blue`</think>`Blue`", "`Blue`"),
        ("<think>It isn't 'red' but 'blue'</think>'Blue'", "'Blue'"),
        ('Red? I will answer "blue"</think>"Blue"', '"Blue"'),
        ("Draft:\n```python\nred()\n```</think>```python\nblue()\n```", "```python\nblue()\n```"),
        ("<think>```python\nred()\n```</think>```python\nblue()\n```", "```python\nblue()\n```"),
        ("Assistant: <think>Red?</think>Blue", "Blue"),
        ("# Step 1\nIt may be red.\n## Step 2\nNo.\n</think>Blue", "Blue"),
        ("import re is red\n</think>Blue", "Blue"),
        ("<b>Red</b> or not?</think>Blue", "Blue"),
        ("<think>Red?</think>Models end it by `</think>`.", "Models end it by `</think>`."),
    ],
)
def test_the_answer_stands_behind_the_reasoning(text: str, answer: str) -> None:
    separated = separate_reasoning(text)
    assert (separated.answer, separated.is_ended) == (answer, True)
    assert "red" not in separated.answer.lower()


@pytest.mark.parametrize(
    "text",
    [
        "<think>",
        "<think>It is #### 5 but",
        "<seed:think>It is red",
        "[THINK]It is red",
        "◁think▷It is red",
        '<think id="1">It is red',
        "<|inner_prefix|>It is red",
        "<|channel|>analysis<|message|>It is red<|end|>",
        "<|start|>assistant<|channel|>analysis<|message|>It is red",
        "analysisWe need to say that it is red",
        "analysis<|message|>It is red",
        "&lt;think&gt; It is #### 5 but",
        "<|START_THINKING|>It is red",
        "thought\nIt is red",
        "<|im_start|>think\nIt is red",
        "<|im_start|>think\nIt is red<|im_end|>",
        "<think>It is red. <answer>red</answer>",
        "<|begin_of_reasoning|>It is red",
        "<think>Red?</think>Blue\n<think>But wait",
        "<thinking><reflection>Red?</reflection> It is",
    ],
)
def test_reasoning_that_never_ended_leaves_an_empty_answer(text: str) -> None:
    separated = separate_reasoning(text)
    assert (separated.answer, separated.is_ended) == ("", False)


@pytest.mark.parametrize("text", ["<think>Red or blue</think>", "Red or blue.</think>\n"])
def test_reasoning_may_end_without_an_answer(text: str) -> None:
    assert separate_reasoning(text).answer == ""
    assert separate_reasoning(text).is_ended


def test_a_thought_without_marks_that_was_cut_has_no_answer() -> None:
    text = "thought\nIs it red?\nIt is"
    assert separate_reasoning(text).answer == "It is"
    assert separate_reasoning(text, is_cut=True) == SeparatedText("Is it red?\nIt is", "", is_ended=False)


def test_a_thought_process_ends_early_only_if_it_was_cut() -> None:
    text = "Here's my thought process: it is red"
    assert separate_reasoning(text).answer is text
    assert separate_reasoning(text, is_cut=True) == SeparatedText("it is red", "", is_ended=False)


@pytest.mark.parametrize(
    "document", ["<a>\n<thought>\nx\n</thought>\n</a>", "def f():\n    pass  # </think>"]
)
def test_code_behind_the_reasoning_is_whole(document: str) -> None:
    assert separate_reasoning("<think>Red?</think>\n" + document) == SeparatedText("Red?", document)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Blue",
        "    return blue\n",
        "<answer>Blue</answer>",
        "<p>Blue</p> is <b>right</b>",
        "<thinking cap> is a name",
        "Wrap it in the <think> tag.",
        "The <thinking> element is not part of HTML. Use <details> instead.",
        "`<think>` opens the block and `</think>` ends it.",
        "Write <think>text</think> in your HTML.",
        "Use <think>, then </think>.",
        "A closing </think> tag ends it",
        "It is closed by </think> and then the answer follows.",
        "Write „</think>“ at the end",
        "print('<think>')\nprint('</think>')",
        'print("<think>blue</think>")',
        'text.split("</think>")[-1]',
        're.sub(r"<think>.*?</think>", "", text)',
        'page = """\n<think>\nblue\n</think>\n"""\n',
        "```html\n<think>\nblue\n</think>\n```\nThat is all.",
        "Models such as these open <think> first.\nThen they answer.",
        "analysis of the light says blue",
        "analysisResults = []\nprint(analysisResults)",
        "The word `assistantfinal` ends it.",
        "Some write `<|channel|>final<|message|>` before.",
        "thought provoking\nBlue",
        "The turn <|im_start|>think\nis for thoughts<|im_end|>\nblue",
        "<|im_start|>assistant\nBlue<|im_end|>",
        "Here's my thought process:\n1. Sky.\n2. Sea.\n\nSo the answer is blue.",
        "Here's my thought process on this question. It is plain. Answer: blue",
        "The double mark ``</think>`` ends it",
        "def f(s):\n    # strip everything up to </think>\n    i = s.find('</think>')\n    return s[i:]",
        "import re\n\n\ndef f(s):\n    return s.strip()  # what follows </think>\n",
        "from re import sub\n\nx = 1  # no </think>\n",
        "# remove <think> blocks, e.g. <think>foo</think>\nimport re",
        "<root>\n  <analysis>x</analysis>\n  <result>3</result>\n</root>",
        '<?xml version="1.0"?>\n<root a="b">\n<analysis>\nx\n</analysis>\n</root>',
        "[link](/blue) and [/other]",
        "Blue<|im_end|>",
        "<p>It writes <code>&lt;/think&gt;</code> at the end of its thoughts: blue</p>",
        "Before the answer stands &lt;/think&gt; in each text, so blue",
        "The role assistantfinal is blue",
    ],
)
def test_an_answer_that_only_mentions_a_mark_is_whole(text: str) -> None:
    separated = separate_reasoning(text)
    assert separated.answer is text
    assert separated == SeparatedText("", text)


def test_the_reasoning_is_kept_whole() -> None:
    text = "<think>Red?</think>Let me look.<think>No.</think>Blue"
    assert separate_reasoning(text).reasoning == "Red?\n\nNo.\n\nLet me look."
    channels = "<|channel|>analysis<|message|>Red?<|end|><|start|>assistant<|channel|>final<|message|>Blue"
    assert separate_reasoning(channels).reasoning == "Red?"


@first_cases(2, "begin", ["", "<think>", "analysisWe think ", "thought\n", "x", "import a\n#", "<a>"])
@pytest.mark.parametrize(
    "part",
    [
        "<think>",
        "</think> ",
        "x <think> </think>",
        "```\n</think>\n",
        '"</think>',
        "'</think>'",
        "<a b></think></a>",
        "<|start|>a",
        "assistantfinal",
    ],
)
def test_it_takes_time_by_length_however_often_a_mark_is_repeated(begin: str, part: str) -> None:
    text = begin + part * (200_000 // len(part))
    started = time.process_time()
    separate_reasoning(text)
    # Quadratic steps would take minutes.
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("given", "apart"),
    [
        (Answer("<think>Red?</think>Blue", "stop"), Answer("Blue", "stop", reasoning="Red?")),
        (
            Answer("<think>Red?</think>Blue", reasoning="Green?"),
            Answer("Blue", reasoning="Green?\n\nRed?"),
        ),
        (Answer("thought\nRed?\nIt is", "length"), Answer("", "length", reasoning="Red?\nIt is")),
        (Answer("thought\nRed?\nBlue", "stop"), Answer("Blue", "stop", reasoning="Red?")),
    ],
)
def test_the_reasoning_of_an_answer_is_apart_from_its_text(given: Answer, apart: Answer) -> None:
    assert with_reasoning_apart(given) == apart


@pytest.mark.parametrize("text", ["", "Blue", " Blue\n", "Write `</think>` at its end."])
def test_an_answer_without_reasoning_is_as_it_was(text: str) -> None:
    answer = Answer(text, reasoning="Red?")
    assert with_reasoning_apart(answer) is answer
