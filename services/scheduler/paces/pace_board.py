"""Paces of which workers reported lately: one board per process, also where another scheduler leads."""

from collections.abc import Mapping

from services.scheduler.paces.pace import RateReport
from services.scheduler.paces.pace_meter import PaceMeter

FORGET_AFTER_SECONDS = 600.0


class PaceBoard:
    def __init__(self) -> None:
        self._meters: dict[str, PaceMeter] = {}

    @property
    def meters(self) -> Mapping[str, PaceMeter]:
        return self._meters

    def record(self, report: RateReport, now: float) -> None:
        self._meters.setdefault(report.pace, PaceMeter()).record(report, now)

    def forget_idle(self, now: float) -> None:
        """Drops paces that nobody reported of for ten minutes, and workers that are silent."""
        oldest = now - FORGET_AFTER_SECONDS
        self._meters = {pace: meter for pace, meter in self._meters.items() if meter.reported_at >= oldest}
        for meter in self._meters.values():
            meter.forget_silent(now)
