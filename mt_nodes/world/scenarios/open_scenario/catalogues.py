# SPDX-License-Identifier: Apache-2.0
"""Catalogues of OpenSCENARIO: files of entities, manoeuvres and routes that scenarios refer to by name."""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

from mt_nodes.base.errors import suggest

#: References to these are left as they are: who controls an entity elsewhere is nobody here.
_UNREAD = ("ControllerAction", "ObjectController", "AssignControllerAction", "ActivateControllerAction")
Refuse = Callable[[str, str], None]
Substitute = Callable[[ET.Element, Mapping[str, str]], None]


def resolve(root: ET.Element, folder: Path | None, refuse: Refuse, substitute: Substitute) -> None:
    """Replace every ``CatalogReference`` of a scenario by the entry that it names.

    ``folder``: of the scenario, from which its ``CatalogLocations`` are looked for; None: there is none. ``refuse``:
    takes what was got and what was expected. ``substitute``: replaces parameters in an entry by values.
    """
    directories = [] if folder is None else _directories(root, folder)
    for parent in list(root.iter()):
        for number, child in enumerate(list(parent)):
            if child.tag == "CatalogReference" and parent.tag not in _UNREAD:
                entry = _entry(child, directories, refuse)
                if entry is not None:
                    assigned = {
                        each.get("parameterRef", "").removeprefix("$"): each.get("value", "")
                        for each in child.iter("ParameterAssignment")
                    }
                    substitute(entry, _declared(entry) | assigned)
                    parent[number] = entry


def _directories(root: ET.Element, folder: Path) -> list[Path]:
    return [folder / one.get("path", "").replace("\\", "/") for one in root.findall("CatalogLocations/*/Directory")]


def _entry(reference: ET.Element, directories: list[Path], refuse: Refuse) -> ET.Element | None:
    """Return a copy of the entry that a reference names."""
    catalogue, name = reference.get("catalogName", ""), reference.get("entryName", "")
    names: list[str] = []
    for path in (file for directory in directories for file in sorted(directory.glob("*.xosc"))):
        for found in _catalogues(path):
            if found.get("name") == catalogue:
                names += [entry.get("name", "") for entry in found]
                for entry in found:
                    if entry.get("name") == name:
                        return copy.deepcopy(entry)
    hint = suggest(name, names) if names else f"; no catalogue of that name in {len(directories)} CatalogLocations"
    refuse(f"entry '{name}' of catalogue '{catalogue}'", f"one that is there{hint}")
    return None


def _catalogues(path: Path) -> list[ET.Element]:
    try:
        return ET.parse(path).getroot().findall("Catalog")
    except (ET.ParseError, OSError):
        return []  # not a catalogue; if it should have been, the entry is refused by name


def _declared(entry: ET.Element) -> dict[str, str]:
    return {
        each.get("name", ""): each.get("value", "")
        for each in entry.findall("ParameterDeclarations/ParameterDeclaration")
    }
