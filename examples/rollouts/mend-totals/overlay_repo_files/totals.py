"""Totals of prices in cents.

Faults: an empty list raises an error, and a discount is cut off instead of rounded.
"""


def total(prices, discount=0.0):
    result = prices[0]
    for price in prices[1:]:
        result += price
    return int(result * (1 - discount))
