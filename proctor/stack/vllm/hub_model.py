"""Whether a model of the hub is there, asked before 3 GB are installed to load it."""

from collections.abc import Mapping
from http import HTTPStatus

from proctor.stack.errors import ModelUnusable

_TIMEOUT_SECONDS = 10
# The hub tells nobody whether a model exists that he may not see.
_NOT_TO_BE_HAD = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})


def refuse_missing(hub_id: str, environ: Mapping[str, str]) -> None:
    """Raises ModelUnusable where neither this machine nor the hub has the model."""
    from huggingface_hub import constants, get_token, try_to_load_from_cache  # noqa: PLC0415  # slow to import

    # vLLM then takes it from elsewhere.
    if environ.get("VLLM_USE_MODELSCOPE") or isinstance(try_to_load_from_cache(hub_id, "config.json"), str):
        return
    if constants.HF_HUB_OFFLINE:
        raise ModelUnusable(
            problem=f"{hub_id} is not on this machine, and HF_HUB_OFFLINE keeps the hub from being asked."
        )
    if _status(f"{constants.ENDPOINT}/api/models/{hub_id}", get_token()) in _NOT_TO_BE_HAD:
        raise ModelUnusable(
            problem=f"The hub {constants.ENDPOINT} has no model {hub_id} that this machine may read: correct "
            "the name, or set HF_TOKEN for one that is private or gated."
        )


def _status(address: str, token: str | None) -> int:
    import httpx  # noqa: PLC0415  # slow to import

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return httpx.head(
            address, headers=headers, timeout=_TIMEOUT_SECONDS, follow_redirects=True
        ).status_code
    except httpx.HTTPError as error:
        raise ModelUnusable(
            problem=f"The model is not on this machine, and the hub does not answer ({address}: {error}): "
            "name a model folder, or set HF_ENDPOINT to a mirror."
        ) from error
