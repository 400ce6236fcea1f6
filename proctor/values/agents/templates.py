"""Programs that work on tasks: how each is started, and how it is led to the model's port.

The image of a task has the program, or the worker brings it. Placeholders: {instruction}, {model}, {base_url}
(ends with /v1), {root_url} and {token}, which is good for one rollout.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_PLACEHOLDER = re.compile(r"\{(instruction|model|base_url|root_url|token)\}")


@dataclass(frozen=True, slots=True)
class AgentTemplate:
    """A program with its arguments, and its variables. `package`: of PyPI or npm; it has the version."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    package: str = ""


_OPENCODE = (
    '{"provider": {"run": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{base_url}",'
    ' "apiKey": "{token}"}, "models": {"{model}": {}}}}, "share": "disabled", "autoupdate": false}'
)
_AIDER = "aider --yes-always --no-git --no-check-update --no-show-model-warnings --model=openai/{model}"
_CLAUDE = "claude --verbose --output-format=stream-json --dangerously-skip-permissions --print"
_CODEX = (
    "codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json --model={model}"
    " -c model_provider=proctor -c model_providers.proctor.name=proctor"
    " -c model_providers.proctor.base_url={base_url} -c model_providers.proctor.env_key=MODEL_TOKEN"
    " -c model_providers.proctor.wire_api=responses --"
)
_MINI = "mini --yolo --exit-immediately --cost-limit=0 --model=openai/{model}"
_QWEN = "qwen --yolo --auth-type=openai --model={model}"
TEMPLATES: Mapping[str, AgentTemplate] = MappingProxyType(
    {
        "aider": AgentTemplate(
            (*_AIDER.split(), "--message={instruction}"),
            {"OPENAI_API_BASE": "{base_url}", "OPENAI_API_KEY": "{token}", "AIDER_ANALYTICS": "false"},
            "aider-chat",
        ),
        "claude-code": AgentTemplate(
            (*_CLAUDE.split(), "{instruction}"),
            {
                "ANTHROPIC_BASE_URL": "{root_url}",
                "ANTHROPIC_AUTH_TOKEN": "{token}",
                "ANTHROPIC_MODEL": "{model}",
                "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "IS_SANDBOX": "1",
            },
            "@anthropic-ai/claude-code",
        ),
        "codex": AgentTemplate(
            (*_CODEX.split(), "{instruction}"), {"MODEL_TOKEN": "{token}"}, "@openai/codex"
        ),
        "gemini": AgentTemplate(
            ("gemini", "--yolo", "--model={model}", "--prompt={instruction}"),
            {"GOOGLE_GEMINI_BASE_URL": "{root_url}", "GEMINI_API_KEY": "{token}"},
            "@google/gemini-cli",
        ),
        "goose": AgentTemplate(
            ("goose", "run", "--no-session", "--with-builtin=developer", "--text={instruction}"),
            {
                "GOOSE_PROVIDER": "openai",
                "GOOSE_MODEL": "{model}",
                "GOOSE_MODE": "auto",
                "GOOSE_DISABLE_KEYRING": "1",
                "OPENAI_HOST": "{root_url}",
                "OPENAI_API_KEY": "{token}",
            },
        ),
        "mini-swe-agent": AgentTemplate(
            (*_MINI.split(), "--task={instruction}"),
            {
                "MSWEA_CONFIGURED": "true",
                "MSWEA_COST_TRACKING": "ignore_errors",
                "MSWEA_SILENT_STARTUP": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OPENAI_BASE_URL": "{base_url}",
                "OPENAI_API_KEY": "{token}",
            },
            "mini-swe-agent",
        ),
        "opencode": AgentTemplate(
            ("opencode", "run", "--format=json", "--model=run/{model}", "{instruction}"),
            {"OPENCODE_CONFIG_CONTENT": _OPENCODE},
            "opencode-ai",
        ),
        "openhands": AgentTemplate(
            ("openhands", "--headless", "--json", "--override-with-envs", "--task={instruction}"),
            {
                "LLM_MODEL": "openai/{model}",
                "LLM_BASE_URL": "{base_url}",
                "LLM_API_KEY": "{token}",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OPENHANDS_SUPPRESS_BANNER": "1",
            },
            "openhands",
        ),
        "qwen-code": AgentTemplate(
            (*_QWEN.split(), "--prompt={instruction}"),
            {"OPENAI_BASE_URL": "{base_url}", "OPENAI_API_KEY": "{token}", "OPENAI_MODEL": "{model}"},
            "@qwen-code/qwen-code",
        ),
    }
)


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced, in one pass: an instruction may hold others."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
