# SPDX-License-Identifier: Apache-2.0
"""What `mt bisect` found, in words, and where it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What came of it, in its results directory.
FILE = "bisect.json"
_NAMED = 5


def bisect_headline(result: Mapping[str, Any]) -> str:
    """Return in one sentence which version is the first bad one, or why none is named."""
    if result["why"]:
        return f"No first bad version: {result['why']}"
    first = [short_name(result, version) for version in result["first_bad"]]
    if result["found"]:
        return f"The first bad version is {first[0]}; the last good one that was tested is {_last_good(result)}."
    more = f" and {len(first) - _NAMED} others" if len(first) > _NAMED else ""
    return (
        f"The first bad version is one of {len(first)}: {', '.join(first[:_NAMED])}{more}; those of them that were not "
        "found bad could not be tested, or decided nothing."
    )


def certainty_words(result: Mapping[str, Any]) -> list[str]:
    """Return how sure the answer is, and what that takes for granted."""
    rates = result["rates"]
    if rates is None:
        return []
    measured, decided = result["calibration"], sum(1 for test in result["tests"] if test["state"] != "skip")
    words = f"The bad version was violated in {measured['violated']} of {_plays(measured)} plays. " if measured else ""
    return [
        f"{words}The answer is wrong with a probability of at most {result['error']:g} ({decided} tests together) if "
        f"each bad version fails in {100 * rates['bad']:.3g} % of its plays or more, each good one in "
        f"{100 * rates['good']:.2g} % or less, and what follows on a bad version is bad."
    ]


def _plays(tally: Mapping[str, Any]) -> int:
    return int(tally["held"] + tally["violated"] + tally["undecided"])


def short_name(result: Mapping[str, Any], version: str) -> str:
    """Return a commit as git abbreviates it, with its subject; a value as it is."""
    title = result["about"][version]["title"]
    return f"{version[:12]} ({title})" if result["kind"] == "commits" else version


def _last_good(result: Mapping[str, Any]) -> str:
    return short_name(result, result["last_good"])
