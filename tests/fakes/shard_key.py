"""The secret of scheduler and results in tests that start one of them."""

SHARD_KEY = "of scheduler and results"
