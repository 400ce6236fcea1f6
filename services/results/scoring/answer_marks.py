"""The part of a text that marks set apart as the answer: tags, boxes, a field of JSON, ends of text."""

import json
import re

# The last one of a kind is the answer; the first kind that is found is taken.
_BOX = ("<|begin_of_box|>", "<|end_of_box|>")
_TAGS = (
    *("answer", "final_answer", "finalanswer", "final", "response", "solution", "output", "result", "ans"),
    *("choice", "option", "selected_option", "correct_option", "label", "prediction", "letter", "conclusion"),
)
_PAIRS = (_BOX, *((f"<{tag}>", f"</{tag}>") for tag in _TAGS))
_MAY_MARK = re.compile(rf"<\|begin_of_box|<(?:{'|'.join(_TAGS)})>")
_BEGINS = re.compile(
    r"\A(?:\s*(?:<s>|<bos>|\[/INST\]|<start_of_turn>model|<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<\|im_start\|>assistant|<\|(?:assistant|begin_of_text|startoftext)\|>))+",
    re.IGNORECASE,
)
# A mark of the turn that has lost its signs.
_ROLE = re.compile(r"\Aassistant(?::[ \t]*|[ \t]*\n)\s*(?=\S)", re.IGNORECASE)
_ASKED = "question|q|query|problem|exercise|task|example|human|user"
_FIELD = (
    "instructions?|passage|paragraph|context|text|input|article"
    "|document|abstract|premise|hypothesis|sentence|review|tweet|comment|statement|claim|story|title"
    "|dialogue"
    "|conversation|word|headline|assistant|system"
)
# A field of a list, or one of several with numbers, is a part of the answer.
_NEXT_TURN = re.compile(
    r"<\|[^|<>]{1,40}\|>|<\uff5c[^\uff5c<>]{1,40}\uff5c>|</?s>|<eos>|<pad>|\[EOS\]|\[end of text\]"
    r"|<(?:start|end)_of_turn>|\[/?INST\]"
    rf"|\n[ \t#>\[(]*\*{{0,3}}(?:(?:{_ASKED})\s?\d{{0,2}}|{_FIELD})\W{{0,3}}:",
    re.IGNORECASE,
)
# Questions that an answer numbers itself.
_OWN_QUESTIONS = re.compile(rf"\W*(?:{_ASKED})\s?1\b", re.IGNORECASE)
_FENCED = re.compile(r"```(?:json)?\s*(\{[^`]*\})\s*(?:```)?\s*\Z", re.IGNORECASE)
_ANSWER_KEY = re.compile(
    r"(?:(?:final|correct|selected|chosen|best|predicted|your|the|my)[ _-]?)?"
    r"(?:answer|choice|option|label|prediction|response)(?:[ _-]?(?:letter|choice|label|key))?|selected"
    r"|chosen",
    re.IGNORECASE,
)
# Beside the answer these only explain it; a field of another name may take it back.
_EXPLAINING_KEY = re.compile(
    r"(?:brief |short |step[ _-]by[ _-]step )?(?:reason(?:ing|s)?|explanations?|rationales?"
    r"|justifications?|analysis"
    r"|thoughts?|thinking|steps?|work|why|confidence(?:[ _-]?\w+)?|probability|certainty|question|id"
    r"|context"
    r"|incorrect|wrong|rejected|eliminated"
    r"|chain[ _-]of[ _-]thought|evidence|notes?|comment)",
    re.IGNORECASE,
)
# The text of the choice whose letter is the answer.
_TEXT_KEY = re.compile(r"(?:(?:answer|option|choice)[ _-]?)?(?:text|value|content)", re.IGNORECASE)
_LETTER = re.compile("[A-Za-z]")
# Of a part of the answer, as its prompt asked for them: "<eoa>".
_ENDS_OF_PARTS = re.compile(r"<eo[a-z]>")
_STRUCK_OUT = re.compile(r"~~(?!\s)[^~\n]{1,200}~~")
# What is left of a last character that the model did not write to its end.
_HALF_A_CHARACTER = "\ufffd"
_MAX_JSON_CHARACTERS = 100_000


def final_answer(text: str) -> str:
    """Without marks, the whole text up to where the model begins a next question.

    Every step is linear in the text, however often a model that has lost itself repeats a sign.
    """
    text = text.strip()
    if text.endswith(_HALF_A_CHARACTER):
        text = text.rstrip(f"{_HALF_A_CHARACTER} \n")
    if text[:1] in ("<", "["):
        text = _BEGINS.sub("", text)
    elif text[:9].lower() == "assistant":
        text = _ROLE.sub("", text)
    text = _between_marks(text).strip()
    if "<eo" in text:
        text = _ENDS_OF_PARTS.sub("", text).strip()
    if "~~" in text:
        text = _STRUCK_OUT.sub(" ", text).strip()
    field = _json_answer(text)
    if field is not None:
        return field
    has_marks = "<" in text or "[" in text or "\n" in text
    next_turn = _NEXT_TURN.search(text) if has_marks and not _OWN_QUESTIONS.match(text) else None
    return (text[: next_turn.start()] if next_turn else text).strip()


def _is_answer(key: str, value: object) -> bool:
    """ "correct" may also say whether an answer is."""
    return _ANSWER_KEY.fullmatch(key) is not None or (key.lower() == "correct" and isinstance(value, str))


def _between_marks(text: str) -> str:
    folded = text.lower()
    # Where lower case has another length, positions in `folded` are not those of the text.
    if "<" not in text or len(folded) != len(text) or not _MAY_MARK.search(folded):
        return text
    for begins, ends in _PAIRS:
        end = folded.rfind(ends)
        start = folded.rfind(begins, 0, end) if end >= 0 else -1
        if start >= 0:
            return text[start + len(begins) : end]
        # A server that stops at the end mark leaves it out.
        start = folded.rfind(begins) if end < 0 else -1
        if start >= 0:
            return text[start + len(begins) :]
    return text


def _json_answer(text: str) -> str | None:
    """The answer of a JSON object that has, beside it, only fields that explain it."""
    if not text.endswith(("}", "```")) or len(text) > _MAX_JSON_CHARACTERS:
        return None
    fenced = _FENCED.search(text) if "```" in text else None
    written = fenced[1] if fenced else text
    # As Python prints it.
    written = written.replace("'", '"') if written.startswith("{'") else written
    try:
        document = json.loads(written, strict=False) if written.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    answers = [key for key in document if _is_answer(key, document[key])]
    others = [key for key in document if key not in answers]
    value = document[answers[0]] if len(answers) == 1 else None
    if (
        len(others) == 1
        and isinstance(value, str)
        and _LETTER.fullmatch(value)
        and _TEXT_KEY.fullmatch(others[0])
    ):
        # Both have to name the same choice.
        return f"{value}. {document[others[0]]}"
    is_plain = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
    return str(value).strip() if is_plain and all(map(_EXPLAINING_KEY.fullmatch, others)) else None
