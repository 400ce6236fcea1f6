"""What tokens of a run's model cost."""
