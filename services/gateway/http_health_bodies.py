"""What health checks are answered with."""

from pydantic import BaseModel


class Liveness(BaseModel):
    status: str


class Readiness(BaseModel):
    status: str
    dependencies: dict[str, str]
