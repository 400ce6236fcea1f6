"""Installs that the chart is rendered for: the examples, and what they leave out."""

from collections.abc import Mapping

from tests.harness.helm import EXAMPLES, Setting

_TRYING_OUT = EXAMPLES["trying-out"]
_PRODUCTION = EXAMPLES["production"]

_OLLAMA = [
    {
        "name": "one",
        "engine": "ollama",
        "min": 1,
        "provider": {"name": "ollama", "baseUrl": "http://ollama:11434"},
    }
]

SETTINGS: Mapping[str, Setting] = {
    **{name: Setting((file,)) for name, file in EXAMPLES.items()},
    "another namespace and name": Setting((_PRODUCTION,), name="evaluation", namespace="team-b"),
    "a name of its own": Setting((_TRYING_OUT,), {"nameOverride": "examiner"}),
    "no network policies": Setting((_PRODUCTION,), {"networkPolicies": {"enabled": False}}),
    "behind a load balancer": Setting(
        (_TRYING_OUT,), {"gateway": {"service": {"type": "LoadBalancer", "annotations": {"a": "b"}}}}
    ),
    "the emptiest pod first": Setting((_PRODUCTION,), {"keda": {"emptiestFirst": {"enabled": True}}}),
    "a quiet cluster": Setting(
        (_PRODUCTION,), {"metrics": {"enabled": False}, "keda": {"enabled": False}, "pools": _OLLAMA}
    ),
    "the oldest Kubernetes": Setting((_TRYING_OUT,), kubernetes="1.29.0"),
}
