"""The chart counts all connections to Postgres that the services may open."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic_settings import BaseSettings

from services.results.settings import ResultsSettings
from services.scheduler.settings import SchedulerSettings
from tests.contract.deploy.settings import SETTINGS
from tests.harness.helm import EXAMPLES, HelmRefused, Setting, render

# The lock of the leader is held, and waited for, on a connection of its own.
LOCK = 1
FOR_PERSONS = 10


def pooled(kind: type[BaseSettings], given: Mapping[str, int]) -> int:
    """Connections in the pools of a service: a setting for each, with the end `_connections`."""
    settings = {
        name: field.default for name, field in kind.model_fields.items() if name.endswith("_connections")
    }
    assert settings
    return sum(given.get(name.upper(), default) for name, default in settings.items())


def computed(values: Mapping[str, Any]) -> int:
    """`max_connections` of the Postgres that is rendered with these values."""
    own = {"postgres": {"trial": {"enabled": True}, "existing": {"secretName": ""}}, **values}
    [postgres] = [
        each
        for each in render(Setting((EXAMPLES["no-keda"],), own))
        if each["kind"] == "StatefulSet" and each["metadata"]["name"] == "proctor-postgres"
    ]
    [container] = postgres["spec"]["template"]["spec"]["containers"]
    option, value = container["args"]
    assert option == "-c"
    return int(value.removeprefix("max_connections="))


@pytest.mark.parametrize(
    "of_scheduler",
    [{}, {"POSTGRES_CONNECTIONS": 20}, {"READ_CONNECTIONS": 30, "POSTGRES_CONNECTIONS": 3}],
)
@pytest.mark.parametrize("of_results", [{}, {"RECORDING_CONNECTIONS": 9, "READ_CONNECTIONS": 2}])
def test_every_pool_of_every_pod_is_counted_with_one_more_pod_in_an_update(
    of_scheduler: Mapping[str, int], of_results: Mapping[str, int]
) -> None:
    values = {
        "scheduler": {"replicas": 3, "settings": of_scheduler},
        "results": {"replicas": 4, "settings": of_results},
    }
    needed = 4 * (pooled(SchedulerSettings, of_scheduler) + LOCK) + 5 * pooled(ResultsSettings, of_results)
    assert computed(values) == max(100, needed + FOR_PERSONS)


def test_small_install_keeps_what_postgres_has_by_default() -> None:
    assert computed({"scheduler": {"replicas": 1}, "results": {"replicas": 1}}) == 100


def test_cluster_gets_as_many_and_a_larger_number_is_kept() -> None:
    def parameters(values: Mapping[str, Any]) -> dict[str, str]:
        made = render(Setting((EXAMPLES["production"],), values))
        [cluster] = [each for each in made if each["kind"] == "Cluster"]
        found: dict[str, str] = cluster["spec"]["postgresql"]["parameters"]
        return found

    assert parameters({}) == {"max_connections": "129"}
    given = {"postgres": {"cluster": {"parameters": {"max_connections": "400", "work_mem": "32MB"}}}}
    assert parameters(given) == {"max_connections": "400", "work_mem": "32MB"}


def test_number_that_is_too_small_is_refused_with_the_one_that_is_needed() -> None:
    values = {"postgres": {"cluster": {"parameters": {"max_connections": "100"}}}}
    with pytest.raises(HelmRefused, match="max_connections is 100, and this release may open 129"):
        render(Setting((EXAMPLES["production"],), values))


def test_commit_waits_for_a_standby_where_there_is_one() -> None:
    [cluster] = [each for each in render(SETTINGS["production"]) if each["kind"] == "Cluster"]
    assert cluster["spec"]["postgresql"]["synchronous"] == {"method": "any", "number": 1}
    alone = Setting((EXAMPLES["production"],), {"postgres": {"cluster": {"instances": 1}}})
    [cluster] = [each for each in render(alone) if each["kind"] == "Cluster"]
    assert "synchronous" not in cluster["spec"]["postgresql"]


def test_names_of_the_settings_in_the_chart_are_settings() -> None:
    text = (EXAMPLES["production"].parents[1] / "templates" / "_connections.tpl").read_text()
    [scheduler, results] = [
        set(re.findall(r'"([A-Z_]+_CONNECTIONS)"', line))
        for line in text.splitlines()
        if '"pools" (dict' in line
    ]
    for kind, names in ((SchedulerSettings, scheduler), (ResultsSettings, results)):
        assert names == {name.upper() for name in kind.model_fields if name.endswith("_connections")}, (
            kind.__name__
        )
