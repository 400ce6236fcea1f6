"""The starter kit: rows of our own making and a small model that has learnt them."""
