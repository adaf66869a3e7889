# SPDX-License-Identifier: Apache-2.0
"""CITATION.cff says what the package is and whose relations it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import mt_nodes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    data = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def test_it_is_a_citation_of_this_version(citation: dict[str, Any]) -> None:
    # What Citation File Format 1.2.0 asks for, and what must not drift.
    assert citation["cff-version"] == "1.2.0"
    assert all(citation[key] for key in ("message", "title", "authors"))
    assert citation["version"] == mt_nodes.__version__
    assert (citation["title"], citation["type"], citation["license"]) == ("mt_nodes", "software", "Apache-2.0")


def test_the_papers_are_cited_with_all_their_authors(citation: dict[str, Any]) -> None:
    first = {r["title"].partition(":")[0]: [a["family-names"] for a in r["authors"]] for r in citation["references"]}
    assert first == {
        "Metamorphic Testing of Driverless Cars": ["Zhou", "Sun"],
        "AutoMT": ["Liang", "Tan", "Deng", "Cai", "Chen", "Zheng"],
        "Moral Testing of Autonomous Driving Systems": ["Tang", "Zhou", "Cheng", "Liu"],
    }
    for reference in citation["references"]:
        assert reference["type"] == "article" and isinstance(reference["year"], int)
        assert all(author["given-names"] for author in reference["authors"])
