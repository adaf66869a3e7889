# SPDX-License-Identifier: Apache-2.0
"""Further pages in a results directory, which other commands have written."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

#: Pages of other commands, relative to the results directory, and their link texts.
TREND, REVIEW, COVERAGE = "trend.html", "review/review.html", "coverage.html"
_PAGES = {REVIEW: "ratings of its cases", TREND: "trend of its relations over several versions", COVERAGE: "coverage"}


class Link(NamedTuple):
    """A page beside a report: its path as a link, relative to the report's directory, and what it shows."""

    href: str
    about: str


def beside(out: Path) -> list[Link]:
    """Return links to the pages that are in a results directory."""
    return [Link(name, about) for name, about in _PAGES.items() if (out / name).is_file()]
