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

_SANDBOXES = [
    {
        "name": "code",
        "engine": "openai",
        "min": 1,
        "provider": {"name": "openai", "baseUrl": "https://api.openai.com/v1"},
        "sandbox": {"engine": "kubernetes", "runtimeClassName": "gvisor", "maxCpus": 2, "sandboxSlots": 8},
    },
    _OLLAMA[0],
]
# Components by name, as an operator may have made them.
_OWN_CERTIFICATES = ("gateway", "scheduler", "results", "nats", "worker-cpu")

SETTINGS: Mapping[str, Setting] = {
    **{name: Setting((file,)) for name, file in EXAMPLES.items()},
    "another namespace and name": Setting((_PRODUCTION,), name="evaluation", namespace="team-b"),
    "a name of its own": Setting((_TRYING_OUT,), {"nameOverride": "examiner"}),
    "no network policies": Setting((_PRODUCTION,), {"networkPolicies": {"enabled": False}}),
    "behind a load balancer": Setting(
        (_TRYING_OUT,),
        {
            "gateway": {
                "allowAnonymous": False,
                "apiKeys": {"secretName": "keys"},
                "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
            }
        },
    ),
    "the emptiest pod first": Setting((_PRODUCTION,), {"keda": {"deletionCosts": {"enabled": True}}}),
    "a Postgres that is verified": Setting(
        (EXAMPLES["remote-only"],),
        {
            service: {
                "volumes": [{"name": "authority", "configMap": {"name": "postgres-ca"}}],
                "volumeMounts": [{"name": "authority", "mountPath": "/etc/postgres", "readOnly": True}],
            }
            for service in ("scheduler", "results")
        }
        | {"gateway": {"operators": ["ann"]}},
    ),
    "a quiet cluster": Setting(
        (_PRODUCTION,), {"metrics": {"enabled": False}, "keda": {"enabled": False}, "pools": _OLLAMA}
    ),
    "mutual TLS": Setting(
        (_PRODUCTION,),
        {
            "tls": {"enabled": True, "issuer": {"name": "internal", "kind": "ClusterIssuer"}},
            "nats": {"tls": {"clientCertificates": True}},
        },
    ),
    "mutual TLS by certificates that exist": Setting(
        (_TRYING_OUT,),
        {"tls": {"enabled": True, "secrets": {name: f"of-{name}" for name in _OWN_CERTIFICATES}}},
    ),
    "sandboxes in pods": Setting((_PRODUCTION,), {"keda": {"enabled": False}, "pools": _SANDBOXES}),
    "backups in a bucket": Setting(
        (_PRODUCTION,), {"backup": {"enabled": True, "url": "s3://proctor-backups/production"}}
    ),
    "a backup of a volume that is restored": Setting(
        (_TRYING_OUT,),
        {
            "objectStore": {"volume": {"size": "1Gi"}},
            "backup": {"enabled": True, "volume": {"size": "5Gi"}, "restore": "2026-11-29T02-17-00Z"},
        },
    ),
    "the oldest Kubernetes": Setting((_TRYING_OUT,), kubernetes="1.29.0"),
}
