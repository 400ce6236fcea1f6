"""Providers that need no pools file, and the environment variables of their keys."""

from collections.abc import Mapping
from types import MappingProxyType

# The first variable that is set is taken.
API_KEY_ENVS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai": ("OPENAI_API_KEY",),
        "grok": ("GROK_API_KEY", "XAI_API_KEY"),
        "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "anthropic": ("ANTHROPIC_API_KEY",),
        "ollama": ("OLLAMA_API_KEY",),
        "remote": ("REMOTE_API_KEY",),
    }
)
