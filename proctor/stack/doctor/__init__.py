"""What this machine has and what it lacks for the local stack, one finding per question."""
