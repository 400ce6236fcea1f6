"""Strict schemas of Kubernetes' own objects, and of custom resources as their operators publish them."""

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))
_OWN_GROUPS = frozenset(
    {"apps", "autoscaling", "policy", "batch", "networking.k8s.io", "rbac.authorization.k8s.io", ""}
)
Object = Mapping[str, Any]


class Invalid(Exception):
    """An object differs from its schema. The message says where."""


def is_own(document: Object) -> bool:
    """Whether Kubernetes itself has this kind."""
    group = document["apiVersion"].rpartition("/")[0]
    return group in _OWN_GROUPS


def validate_own(document: Object, version: str) -> None:
    """As an API server of that version with strict decoding; raises Invalid."""
    group, _, api = document["apiVersion"].rpartition("/")
    of_group = f"{group.partition('.')[0]}-{api}" if group else api
    _validate(document, _own_validator(version, f"{document['kind'].lower()}-{of_group}"))


def validate_custom(document: Object) -> None:
    """By the schema of its CustomResourceDefinition, where unknown fields are refused; raises Invalid."""
    _validate(document, _custom_validators()[document["apiVersion"], document["kind"]])


def _validate(document: Object, validator: Draft202012Validator) -> None:
    error = next(iter(validator.iter_errors(document)), None)
    if error is not None:
        location = "/".join(map(str, error.absolute_path))
        raise Invalid(f"{document['kind']} {document['metadata']['name']}: {location}: {error.message}")


@cache
def _own_validator(version: str, name: str) -> Draft202012Validator:
    schema = json.loads((_own_folder(version) / f"{name}.json").read_text())
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ _own_definitions(version))


@cache
def _own_definitions(version: str) -> "Registry[Any]":
    definitions = json.loads((_own_folder(version) / "_definitions.json").read_text())
    registry: Registry[Any] = Registry()
    return Resource.from_contents(definitions) @ registry


def _own_folder(version: str) -> Path:
    found = importlib.util.find_spec("kubernetes_validate")
    assert found is not None
    assert found.origin is not None
    schemas = Path(found.origin).parent / "kubernetes-json-schema"
    [folder] = schemas.glob(f"v{version}.*-local-strict")
    return folder


def _fields(required: str, **types: Any) -> dict[str, Any]:
    """Of an object with these fields and no other; those that are needed are separated by spaces."""
    properties = {name: {"type": each} if isinstance(each, str) else each for name, each in types.items()}
    return {"type": "object", "properties": properties, "required": required.split()}


_DURATION = {"type": "string", "pattern": "^([0-9]+(h|m|s))+$"}
# Kinds whose definitions are not in the reference folder: the fields that the chart sets, as cert-manager
# 1.18 and LeaderWorkerSet 0.7 define them. Pods in them are validated as pods.
_BY_HAND: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("cert-manager.io/v1", "Certificate"): _fields(
        "secretName issuerRef",
        secretName="string",
        issuerRef=_fields("name", name="string", kind="string", group="string"),
        duration=_DURATION,
        renewBefore=_DURATION,
        privateKey=_fields(
            "",
            algorithm={"enum": ["RSA", "ECDSA", "Ed25519"]},
            size="integer",
            rotationPolicy={"enum": ["Never", "Always"]},
        ),
        usages={"items": {"enum": ["digital signature", "key encipherment", "server auth", "client auth"]}},
        dnsNames={"items": {"type": "string"}, "minItems": 1},
    ),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _fields(
        "leaderWorkerTemplate",
        replicas="integer",
        leaderWorkerTemplate=_fields(
            "workerTemplate",
            size={"type": "integer", "minimum": 1},
            restartPolicy={"enum": ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"]},
            leaderTemplate={"type": "object"},
            workerTemplate={"type": "object"},
        ),
    ),
}


@cache
def _custom_validators() -> Mapping[tuple[str, str], Draft202012Validator]:
    folder = Path(os.environ["PROCTOR_REFERENCE_DIR"]) / "crds"
    by_hand = {
        kind: Draft202012Validator(_strict(_fields("spec", spec=spec), is_root=True))
        for kind, spec in _BY_HAND.items()
    }
    return by_hand | {
        (f"{spec['group']}/{version['name']}", spec["names"]["kind"]): Draft202012Validator(
            _strict(version["schema"]["openAPIV3Schema"], is_root=True)
        )
        for spec in _definitions(folder)
        for version in spec["versions"]
    }


def _definitions(folder: Path) -> Iterator[Mapping[str, Any]]:
    for file in sorted(folder.glob("*.yaml")):
        text = "\n".join(line for line in file.read_text().splitlines() if "{{" not in line)
        for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if document and document["kind"] == "CustomResourceDefinition":
                yield document["spec"]


def _strict(schema: Mapping[str, Any], *, is_root: bool = False) -> dict[str, Any]:
    """What strict decoding refuses is refused: fields that the schema does not list."""
    strict = dict(deepcopy(schema)) if is_root else dict(schema)
    if strict.pop("x-kubernetes-int-or-string", False):
        strict.pop("type", None)
        strict["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if strict.pop("nullable", False) and isinstance(strict.get("type"), str):
        strict["type"] = [strict["type"], "null"]
    if "properties" in strict:
        strict["properties"] = {name: _strict(each) for name, each in strict["properties"].items()}
        if not strict.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in strict:
            strict["additionalProperties"] = False
    if is_root:
        strict["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"}}
    for name in ("items", "additionalProperties"):
        if isinstance(strict.get(name), dict):
            strict[name] = _strict(strict[name])
    return strict
