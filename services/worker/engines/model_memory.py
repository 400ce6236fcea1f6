"""The memory that the keys and values of one longest context take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """What decides the size of a model's keys and values for each token."""

    layers: int
    kv_heads: int
    head_dim: int

    def cache_bytes(self, context_tokens: int, bytes_per_value: float) -> int:
        """2 (keys and values) × layers × kv heads × head dim × context × bytes of a value.

        The least cache that serves one request of full length, or more where some layers look back less far.
        """
        values = 2 * self.layers * self.kv_heads * self.head_dim * context_tokens
        return round(values * bytes_per_value)
