# SPDX-License-Identifier: Apache-2.0
"""Whether the entries of an ontology name only others that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.errors import UsageError, suggest
from mt_nodes.rules.condition import refuse_unknown_names

if TYPE_CHECKING:
    from mt_nodes.rules.ontology import Ontology


def refuse_discord(ontology: Ontology, where: Path) -> None:
    """Refuse entries that name others which are not there.

    Raises:
        UsageError: naming the entry and the nearest name that exists.
    """
    for key, kind, named, known in _links(ontology):
        if named and named not in known:
            raise UsageError(f"{where}: {key}: no {kind} '{named}'{suggest(named, known)}")
    for element in ontology.elements.values():
        if element.needs:
            needs = f"{where}: {element.name}.needs"
            refuse_unknown_names(element.needs, ontology.predicates, ontology.elements, needs)


def _links(ontology: Ontology) -> Iterator[tuple[str, str, str, Collection[str]]]:
    """Yield key, kind of what it names, the name, and the names that exist."""
    for element in ontology.elements.values():
        yield f"{element.name}.road", "road", element.road, ontology.roads
        yield f"{element.name}.crossing", "road", element.crossing, ontology.roads
        yield f"{element.name}.asks", "behaviour", element.asks, ontology.behaviours
    for road in ontology.roads.values():
        yield f"{road.name}.marked_by", "element", road.marked_by, ontology.elements
    for one in ontology.behaviours.values():
        yield f"{one.name}.denied", "behaviour", one.denied, ontology.behaviours
        yield f"{one.name}.reads_as", "behaviour", one.reads_as, ontology.behaviours
