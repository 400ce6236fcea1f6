"""Judge prompts as YAML documents: those that are installed, and those that users give."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from proctor.values.judging.fence import QUOTED
from proctor.values.judging.scale import Scale, checked_scale, read_scale
from services.scheduler.judging.errors import InvalidJudgePrompt
from services.scheduler.judging.judge_prompt import MAX_DOCUMENT_BYTES, JudgePrompt
from services.scheduler.suites.format.yaml_document import InvalidYaml, read_yaml
from services.scheduler.suites.templates.errors import InvalidTemplate
from services.scheduler.suites.templates.prompt_template import PromptTemplate, compile_template

_KEYS = frozenset({"judge", "version", "description", "scale", "questions", "template"})
_SUFFIX = ".yaml"
_MAX_VERSION_CHARACTERS = 50
# A task of a run is called so.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class YamlJudgePrompts:
    """The installed prompts are files of the release, so they are read once."""

    def __init__(self) -> None:
        folder = files(__package__).joinpath("prompts")
        self._documents: Mapping[str, str] = {
            file.name.removesuffix(_SUFFIX): file.read_text()
            for file in folder.iterdir()
            if file.name.endswith(_SUFFIX)
        }

    def names(self) -> Sequence[str]:
        return sorted(self._documents)

    def document(self, name: str) -> str | None:
        return self._documents.get(name)

    def read(self, document: str) -> JudgePrompt:
        if len(document.encode(errors="replace")) > MAX_DOCUMENT_BYTES:
            raise InvalidJudgePrompt(f"it takes more than {MAX_DOCUMENT_BYTES} bytes")
        fields = _fields(document)
        questions = _questions(fields.get("questions") or [])
        prompt = JudgePrompt(
            name=_name(fields.get("judge")),
            version=_version(fields.get("version", "1")),
            description=str(fields.get("description", "")),
            scale=str(fields.get("scale", "yes-no")),
            template=_template(fields.get("template")),
            questions=tuple(text for text, _ in questions),
            weights=tuple(weight for _, weight in questions),
        )
        checked_scale(Scale(read_scale(prompt.scale).labels, prompt.weights))
        return prompt


def _fields(document: str) -> Mapping[str, Any]:
    try:
        read = read_yaml(document.encode(errors="replace"))
    except InvalidYaml as error:
        line = f"line {error.line}: " if error.line else ""
        raise InvalidJudgePrompt(f"{line}{error.problem}") from error
    if read.faults:
        raise InvalidJudgePrompt(f"line {read.faults[0].line}: {read.faults[0].problem}")
    fields = read.root.value()
    if not isinstance(fields, dict):
        raise InvalidJudgePrompt("it is no mapping with judge, version, scale and template")
    unknown = [str(key) for key in fields if key not in _KEYS]
    if unknown:
        raise InvalidJudgePrompt(f"there is no key {unknown[0]:.80}; it has {', '.join(sorted(_KEYS))}")
    return fields


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidJudgePrompt("judge must be a name of 1 to 64 letters, digits, _ and -")
    return value


def _version(value: object) -> str:
    version = str(value)
    if not version.isprintable() or not 0 < len(version) <= _MAX_VERSION_CHARACTERS:
        raise InvalidJudgePrompt(f"version must have 1 to {_MAX_VERSION_CHARACTERS} characters of one line")
    return version


def _template(source: object) -> PromptTemplate:
    if not isinstance(source, str) or not source.strip():
        raise InvalidJudgePrompt("template must be a text")
    try:
        template = compile_template(source)
    except InvalidTemplate as error:
        raise InvalidJudgePrompt(f"template: {error}") from error
    unknown = set(template.fields) - set(QUOTED)
    if unknown:
        raise InvalidJudgePrompt(f"template: there is no {min(unknown)}; it may use {', '.join(QUOTED)}")
    shown = {name for name in ("answer", "first", "second") if name in template.fields}
    if shown not in ({"answer"}, {"first", "second"}):
        raise InvalidJudgePrompt(
            "template: it must show {{ answer }}, or of a pair {{ first }} and {{ second }}"
        )
    return template


def _questions(listed: object) -> Sequence[tuple[str, float]]:
    if not isinstance(listed, list):
        raise InvalidJudgePrompt("questions must be a list of texts, or of question and weight")
    return [_question(one) for one in listed]


def _question(one: object) -> tuple[str, float]:
    fields = {"question": one} if isinstance(one, str) else one
    if not isinstance(fields, dict) or not set(fields) <= {"question", "weight"}:
        raise InvalidJudgePrompt("each of the questions is a text, or has question and weight")
    text, weight = fields.get("question"), fields.get("weight", 1)
    if not isinstance(text, str) or not text.strip():
        raise InvalidJudgePrompt("each of the questions must be a text")
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidJudgePrompt(f"the weight of a question must be a number, not {weight!r:.80}")
    return text.strip(), float(weight)
