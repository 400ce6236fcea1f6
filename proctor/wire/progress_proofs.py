"""Proof that a progress report is of results, with the key that workers lack."""

import hmac

# A header: a release without it reads the same message.
PROGRESS_PROOF = "Proctor-Progress-Proof"


def progress_proof(payload: bytes, key: str) -> str:
    """HMAC-SHA-256 over the report as it is sent. Raises ValueError without a key."""
    if not key:
        raise ValueError("a progress proof needs a key")
    # No dispatch proof begins so: the two share the key.
    return hmac.new(key.encode(), b"progress/" + payload, "sha256").hexdigest()


def is_proved(payload: bytes, proof: str, key: str) -> bool:
    # A header may have any bytes.
    return hmac.compare_digest(proof.encode(errors="replace"), progress_proof(payload, key).encode())
