"""The providers that need no pools file, their servers, and the variables that hold their keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from proctor.values.providers.rules import rules_for


@dataclass(frozen=True, slots=True)
class RemoteProvider:
    """`base_url` is empty where only the environment names one; the first key that is set is taken."""

    name: str
    api_key_envs: tuple[str, ...]
    base_url: str = ""
    engine: str = "openai"
    # Behind the OpenAI protocol: whether the provider's server holds an answer to a JSON schema.
    takes_schema: bool = False
    # In the conventions of OpenTelemetry, where it has another name there.
    traced_as: str = ""

    @property
    def url_variable(self) -> str:
        return f"{self.name.upper()}_BASE_URL"

    def is_configured(self, environ: Mapping[str, str]) -> bool:
        return bool(environ.get(self.url_variable)) or any(
            _has_key(each, environ) for each in self.api_key_envs
        )

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.url_variable) or self.base_url

    @property
    def keys_page(self) -> str:
        """Where the provider gives keys; empty where its own server needs none."""
        return rules_for(self.engine, urlsplit(self.base_url).hostname or "").keys_page

    def is_own(self, address: str) -> bool:
        """Whether it is the provider's server, and not another one of the same protocol."""
        return bool(self.base_url) and address.rstrip("/") == self.base_url

    @property
    def key_advice(self) -> str:
        """For a provider that gives keys: "set OPENAI_API_KEY (https://… gives keys)"."""
        return f"set {self.api_key_envs[0]} ({self.keys_page} gives keys)"

    def lacks_key(self, environ: Mapping[str, str]) -> bool:
        """Whether the provider's own server would be asked without a key."""
        is_own = self.is_own(self.address(environ))
        return (
            bool(self.keys_page) and is_own and not any(_has_key(each, environ) for each in self.api_key_envs)
        )

    def api_key_env(self, environ: Mapping[str, str]) -> str:
        set_variables = (variable for variable in self.api_key_envs if _has_key(variable, environ))
        return next(set_variables, self.api_key_envs[0])


def _has_key(variable: str, environ: Mapping[str, str]) -> bool:
    """Itself, or in the file of a mounted secret."""
    return bool(environ.get(variable) or environ.get(f"{variable}_FILE"))


_KNOWN = (
    RemoteProvider("openai", ("OPENAI_API_KEY",), "https://api.openai.com/v1", takes_schema=True),
    RemoteProvider(
        "grok", ("GROK_API_KEY", "XAI_API_KEY"), "https://api.x.ai/v1", takes_schema=True, traced_as="x_ai"
    ),
    RemoteProvider(
        "gemini",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "https://generativelanguage.googleapis.com/v1beta",
        engine="gemini",
        traced_as="gcp.gemini",
    ),
    RemoteProvider("anthropic", ("ANTHROPIC_API_KEY",), "https://api.anthropic.com", engine="anthropic"),
    RemoteProvider("ollama", ("OLLAMA_API_KEY",), "http://localhost:11434", engine="ollama"),
    RemoteProvider("remote", ("REMOTE_API_KEY",)),
)
REMOTE_PROVIDERS: Mapping[str, RemoteProvider] = MappingProxyType({each.name: each for each in _KNOWN})
