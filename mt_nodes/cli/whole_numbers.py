# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that are typed."""

from __future__ import annotations

import argparse

#: Python reads no numbers of more than 4,300 digits, and nobody means one of a hundred.
_MOST_DIGITS = 100


def at_least_one(text: str) -> int:
    """Read a whole number of at least 1, for argparse."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got '{text:.30}', expected a whole number of at least 1")
    return number


def whole_number(text: str) -> int:
    """Read a whole number, for argparse."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < _MOST_DIGITS):
        raise argparse.ArgumentTypeError(f"got '{text:.30}', expected a whole number")
    return int(text)
