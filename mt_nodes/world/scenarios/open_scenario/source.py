# SPDX-License-Identifier: Apache-2.0
"""The elements of an OpenSCENARIO file with parameters and expressions replaced by values, and its problems.

Operators and functions of expressions ``${…}`` (1.1 and later) are those of the standard (user guide, section
"Expressions"): ``+ - * / %``, unary minus, and ``round floor ceil sqrt pow abs sign max min``.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.world.scenarios.open_scenario.catalogues import resolve


@dataclass
class OpenScenarioFile:
    """An OpenSCENARIO file. ``problems``: unsupported or invalid content."""

    root: ET.Element
    file: str
    problems: dict[str, None] = field(default_factory=dict)  # each once
    values: dict[str, str] = field(default_factory=dict)  # of parameters

    @classmethod
    def of(cls, text: str, file: str, parameters: Mapping[str, str], folder: Path | None = None) -> OpenScenarioFile:
        """Parse a text.

        ``folder``: of the file, from which its catalogues are looked for; None: there is none.
        Raises UsageError: it is not XML, or a parameter is unknown.
        """
        try:
            root = ET.fromstring(text)
        except ET.ParseError as error:
            raise UsageError(f"{file}: not XML: {error}") from error
        found = cls(root, file)
        parameters = found._renamed_ego(parameters)
        values = found.values = found._values(parameters)
        found._substitute(root, values)
        resolve(root, folder, found.refuse, lambda entry, own: found._substitute(entry, {**values, **own}))
        return found

    def _renamed_ego(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Call the entity ``ego`` that a parameter of that name says, unless the file declares one; return the rest."""
        if "ego" not in given or any(one.get("name") == "ego" for one in self.root.iter("ParameterDeclaration")):
            return given
        names = [one.get("name", "") for one in self.root.findall("Entities/ScenarioObject")]
        if given["ego"] not in names:
            raise UsageError(f"{self.file}: ego: got '{given['ego']}', expected one of {', '.join(names)}")
        for element in self.root.iter():
            for key in ("name",) if element.tag == "ScenarioObject" else ("entityRef", "masterEntityRef"):
                if element.get(key) == given["ego"]:
                    element.set(key, "ego")
        return {name: value for name, value in given.items() if name != "ego"}

    def _values(self, given: Mapping[str, str]) -> dict[str, str]:
        declared = {
            each.get("name", ""): each.get("value", "")
            for where in ("ParameterDeclarations", "Storyboard/Story/ParameterDeclarations")
            for each in self.root.findall(f"{where}/ParameterDeclaration")
        }
        for key in given:
            if key not in declared:
                raise UsageError(f"{self.file}: unknown parameter '{key}'{suggest(key, declared)}")
        return {**declared, **given}

    def _substitute(self, root: ET.Element, values: Mapping[str, str]) -> None:
        """Replace ``$name`` and ``${…}`` by values everywhere."""
        known = dict(values)
        for name, value in values.items():  # a parameter's value may be an expression over others
            known[name] = self._value("ParameterDeclaration", "value", value, values)
        for element in root.iter():
            for key, value in element.attrib.items():
                if value.startswith("$") and key != "parameterRef":
                    element.set(key, self._value(element.tag, key, value, known))

    def _value(self, tag: str, key: str, value: str, values: Mapping[str, str]) -> str:
        """Return what a text of an attribute stands for."""
        if not value.startswith("$"):
            return value
        if value[1:] in values:
            return values[value[1:]]
        if value.startswith("${") and value.endswith("}"):
            try:
                return value_of(value[2:-1], values)
            except ValueError as error:
                if key != "name":  # names are for people
                    self.refuse(f"<{tag} {key}='{value}'>", f"arithmetic over numbers and parameters ({error})")
                return value
        self.refuse(f"<{tag} {key}='{value}'>", f"a declared parameter{suggest(value[1:], values)}")
        return value

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
        """Raise an error with all problems, if there are any. Raises UsageError: there are problems."""
        if self.problems:
            raise UsageError("\n    | ".join([f"{self.file}: {len(self.problems)} problems", *self.problems]))


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: math.fmod,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    **{"round": round, "floor": math.floor, "ceil": math.ceil, "sqrt": math.sqrt, "pow": math.pow},
    **{"abs": abs, "max": max, "min": min, "sign": lambda x: (x > 0) - (x < 0)},
}
_NAME = re.compile(r"\$(\w+)")


def value_of(text: str, values: Mapping[str, str]) -> str:
    """Return the value of an expression as text.

    ``text``: between the braces. ``values``: of declared parameters, by name.
    Raises ValueError: it is no arithmetic over numbers and known parameters.
    """

    def known(name: re.Match[str]) -> str:
        if name[1] not in values:
            raise ValueError(f"parameter '{name[1]}' is not declared")
        return f"({values[name[1]]})"

    try:
        number = _evaluated(ast.parse(_NAME.sub(known, text), mode="eval").body)
    except (SyntaxError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return f"{number:.12g}"


def _evaluated(node: Any) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return -_evaluated(node.operand) if isinstance(node.op, ast.USub) else _evaluated(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return float(_FUNCTIONS[node.func.id](*map(_evaluated, node.args)))
    raise ValueError(f"{ast.unparse(node)} is no arithmetic")
