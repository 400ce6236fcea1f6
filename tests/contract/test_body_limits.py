"""The gateway takes a form with the largest file that the scheduler stores."""

import pytest

from services.gateway.settings import GatewaySettings
from services.scheduler.settings import SchedulerSettings


@pytest.mark.parametrize(
    ("body", "file"),
    [
        ("max_dataset_body_bytes", "max_dataset_bytes"),
        ("max_batch_file_body_bytes", "max_batch_file_bytes"),
        ("max_tasks_body_bytes", "max_tasks_bytes"),
    ],
)
def test_a_form_has_room_for_the_largest_file(body: str, file: str) -> None:
    assert GatewaySettings.model_fields[body].default > SchedulerSettings.model_fields[file].default
