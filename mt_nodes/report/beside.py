# SPDX-License-Identifier: Apache-2.0
"""What else lies in a results directory for people to look at: pages that other commands left there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

#: Where each command leaves its page, below the results directory; and what is told of it.
TREND, REVIEW, COVERAGE = "trend.html", "review/review.html", "coverage.html"
_PAGES = {
    REVIEW: "what people say of its cases",
    TREND: "its relations over several versions",
    COVERAGE: "where it tried anything",
}


class Link(NamedTuple):
    """A page beside a report: its path as a link, relative to the report's directory, and what it shows."""

    href: str
    about: str


def beside(out: Path) -> list[Link]:
    """Return links to the pages that lie in a results directory, none to what is not there."""
    return [Link(name, about) for name, about in _PAGES.items() if (out / name).is_file()]
