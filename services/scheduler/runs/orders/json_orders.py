"""Orders as they are stored: JSON, without the priority, which is a column."""

import json

from proctor.values.plain import from_plain, to_plain
from proctor.values.priority import Priority
from services.scheduler.runs.orders.run_order import (
    RunOrder,
)


def order_to_json(order: RunOrder) -> str:
    return json.dumps({name: value for name, value in to_plain(order).items() if name != "priority"})


def order_from_json(text: str, priority: Priority) -> RunOrder:
    return from_plain(RunOrder, {**json.loads(text), "priority": priority})
