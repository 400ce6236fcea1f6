"""A figure of a metric as every page shows it."""

from pydantic import BaseModel

from services.gateway.pages.text import is_share


class Figure(BaseModel):
    """`mean` is the figure itself; the ends of its 95 % interval are None where it has none."""

    metric: str = ""
    mean: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 0
    interval_method: str = ""

    @property
    def has_interval(self) -> bool:
        return self.ci_low is not None and self.ci_high is not None

    @property
    def ends(self) -> tuple[float | None, ...]:
        """The figure and its interval."""
        return (self.ci_low, self.mean, self.ci_high) if self.has_interval else (self.mean,)

    @property
    def half_width(self) -> float | None:
        return None if self.ci_low is None or self.ci_high is None else (self.ci_high - self.ci_low) / 2

    @property
    def is_share(self) -> bool:
        return is_share(self.metric, *self.ends)
