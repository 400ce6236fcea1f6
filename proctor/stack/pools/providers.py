"""Providers that are known by name: which engine asks them, where, and with the key of which variable."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from proctor.stack.options import remote_pool
from proctor.values.pools import ConstrainedField, Pool, Provider


@dataclass(frozen=True, slots=True)
class RemoteProvider:
    """`base_url` is empty where only the environment can tell; the first key that is set is taken."""

    name: str
    base_url: str
    key_variables: tuple[str, ...]
    engine: str = "openai"
    # Behind the OpenAI protocol: whether the provider's server holds an answer to a JSON schema.
    takes_schema: bool = False

    @property
    def url_variable(self) -> str:
        return f"{self.name.upper()}_BASE_URL"

    def is_configured(self, environ: Mapping[str, str]) -> bool:
        return bool(environ.get(self.url_variable)) or any(
            _has_key(each, environ) for each in self.key_variables
        )

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.url_variable) or self.base_url

    def key_variable(self, environ: Mapping[str, str]) -> str:
        set_variables = (variable for variable in self.key_variables if _has_key(variable, environ))
        return next(set_variables, self.key_variables[0])


def _has_key(variable: str, environ: Mapping[str, str]) -> bool:
    """Itself, or in the file of a mounted secret."""
    return bool(environ.get(variable) or environ.get(f"{variable}_FILE"))


_KNOWN = (
    RemoteProvider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), takes_schema=True),
    RemoteProvider("grok", "https://api.x.ai/v1", ("GROK_API_KEY", "XAI_API_KEY"), takes_schema=True),
    RemoteProvider(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        engine="gemini",
    ),
    RemoteProvider("anthropic", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",), engine="anthropic"),
    RemoteProvider("ollama", "http://localhost:11434", ("OLLAMA_API_KEY",), engine="ollama"),
    RemoteProvider("remote", "", ("REMOTE_API_KEY",)),
)
REMOTE_PROVIDERS: Mapping[str, RemoteProvider] = MappingProxyType({each.name: each for each in _KNOWN})


def pool_of(provider: RemoteProvider, base_url: str, environ: Mapping[str, str]) -> Pool:
    """`openai` may be any server, so only OpenAI's own is known to hold answers to a schema."""
    is_any_server = provider.name == "openai" and base_url.rstrip("/") != provider.base_url
    can_constrain = provider.takes_schema and not is_any_server
    field = ConstrainedField.RESPONSE_FORMAT if can_constrain else None
    called = Provider(provider.name, base_url, provider.key_variable(environ), field)
    return remote_pool(called, name=f"remote-{provider.name}", engine=provider.engine)
