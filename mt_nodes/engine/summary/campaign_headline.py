# SPDX-License-Identifier: Apache-2.0
"""The outcome of a campaign in one plain sentence: that of its worst cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.engine.summary.headline import Headline, headline

#: Stands between the names of cell and relation, which neither has.
_SEPARATOR = "\0"


@dataclass(frozen=True)
class CampaignHeadline:
    """What a campaign comes to: its headline, and the cell that this is about, empty where it is about none."""

    found: Headline
    cell: str = ""


def campaign_headline(summary: Mapping[str, Any]) -> CampaignHeadline:
    """Return the outcome of a campaign in plain words, from its summary.

    A relation in one cell and the same in another count as two; ``found.relation`` is the relation alone.
    """
    cells = summary["cells"]
    relations = {
        f"{cell}{_SEPARATOR}{name}": {"change": name, **_filled(row)}
        for cell, each in cells.items()
        for name, row in each["relations"].items()
    }
    deaths = [death for each in cells.values() for death in each.get("deaths", ())]
    named = summary["exit_why"].partition(":")[0] in cells
    why = f"in {summary['exit_why']}" if named else summary["exit_why"]
    found = headline({**summary, "exit_why": why, "relations": relations, **({"deaths": deaths} if deaths else {})})
    cell, _, relation = found.relation.partition(_SEPARATOR)
    rest = found.rest.replace(_SEPARATOR, ": ")
    if not relation:
        return CampaignHeadline(replace(found, rest=rest))
    sentence = f"{cell}: {found.sentence}" if len(cells) > 1 else found.sentence
    return CampaignHeadline(replace(found, sentence=sentence, rest=rest, relation=relation), cell)


def _filled(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a relation without an empty name of its change, which is that of a summary without relation files."""
    return {key: value for key, value in row.items() if key != "change" or value}
