"""The secret of scheduler and results in tests that start one of them."""

DISPATCH_PROOF_KEY = "of scheduler and results"
