"""What a user orders: one model over one suite or data set, and what may be asked of it."""

MAX_FEWSHOT = 100
