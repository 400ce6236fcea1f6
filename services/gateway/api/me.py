"""The caller itself, and what it may do."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from services.gateway.auth.identity import Caller
from services.gateway.http.paths import ME


class Me(BaseModel):
    user: str
    is_operator: bool = Field(description="May change limits, and what belongs to other users")
    has_key: bool = Field(description="An API key proves the name; false where the gateway needs none")


router = APIRouter(tags=["users"])


@router.get(ME, summary="The caller, and what it may do")
async def me(caller: Caller) -> Me:
    return Me(user=caller.name, is_operator=caller.is_operator, has_key=caller.is_verified)
