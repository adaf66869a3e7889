# SPDX-License-Identifier: Apache-2.0
"""The elements of an OpenSCENARIO file with parameters replaced by values, and its problems."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field

from mt_nodes.base.errors import UsageError, suggest


@dataclass
class OpenScenarioFile:
    """An OpenSCENARIO file.

    Attributes:
        problems: unsupported or invalid content.
    """

    root: ET.Element
    file: str
    problems: dict[str, None] = field(default_factory=dict)  # each once

    @classmethod
    def of(cls, text: str, file: str, parameters: Mapping[str, str]) -> OpenScenarioFile:
        """Parse a text.

        Raises:
            UsageError: it is not XML, or a parameter is unknown.
        """
        try:
            root = ET.fromstring(text)
        except ET.ParseError as error:
            raise UsageError(f"{file}: not XML: {error}") from error
        found = cls(root, file)
        found._substitute(found._values(parameters))
        return found

    def _values(self, given: Mapping[str, str]) -> dict[str, str]:
        declared = {
            each.get("name", ""): each.get("value", "")
            for each in self.root.findall("ParameterDeclarations/ParameterDeclaration")
        }
        for key in given:
            if key not in declared:
                raise UsageError(f"{self.file}: unknown parameter '{key}'{suggest(key, declared)}")
        return {**declared, **given}

    def _substitute(self, values: Mapping[str, str]) -> None:
        """Replace ``$name`` by values everywhere."""
        for element in self.root.iter():
            for key, value in element.attrib.items():
                if not value.startswith("$"):
                    continue
                if value[1:] in values:
                    element.set(key, values[value[1:]])
                elif value.startswith("${"):
                    self.refuse(f"<{element.tag} {key}='{value}'>", "a value: expressions are not read")
                else:
                    hint = suggest(value[1:], values)
                    self.refuse(f"<{element.tag} {key}='{value}'>", f"a declared parameter{hint}")

    def refuse(self, got: str, expected: str) -> None:
        """Record a problem."""
        self.problems[f"got {got}, expected {expected}"] = None

    def number(self, element: ET.Element | None, key: str, otherwise: float = 0.0) -> float:
        """Return a number of an element, or the default."""
        text = None if element is None else element.get(key)
        if element is None or text is None:
            return otherwise
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.refuse(f"<{element.tag} {key}='{text}'>", "a number")
            return otherwise
        return value

    def done(self) -> None:
        """Raise an error with all problems, if there are any.

        Raises:
            UsageError: there are problems.
        """
        if self.problems:
            raise UsageError("\n    | ".join([f"{self.file}: {len(self.problems)} problems", *self.problems]))
