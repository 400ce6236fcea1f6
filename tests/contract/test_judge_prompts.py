"""The prompts of judges that pages, the command line and the MCP server name are those that are installed."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from proctor.cli.mcp.orders import JudgeOfOrder
from proctor.cli.runs.judge import JudgeOptions
from services.gateway.pages.runs.judge_form import PROMPTS
from services.scheduler.judging.yaml_judge_prompts import YamlJudgePrompts

INSTALLED = YamlJudgePrompts().names()


def help_of_option() -> str:
    [prompt] = [each for each in fields(JudgeOptions) if each.name == "prompt"]
    [option] = get_type_hints(JudgeOptions, include_extras=True)[prompt.name].__metadata__
    return str(option.help)


def test_the_form_has_all_of_them() -> None:
    assert sorted(name for name, _ in PROMPTS) == INSTALLED


@pytest.mark.parametrize("name", INSTALLED)
def test_each_is_named_where_one_is_asked_for(name: str) -> None:
    assert name in help_of_option()
    assert name in str(JudgeOfOrder.model_fields["prompt"].description)
