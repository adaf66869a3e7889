# SPDX-License-Identifier: Apache-2.0
"""Expressions ``${…}`` of OpenSCENARIO 1.1 and later: arithmetic over numbers and declared parameters.

Operators and functions are those of the standard (user guide, section "Expressions"): ``+ - * / %``, unary minus, and
``round floor ceil sqrt pow abs sign max min``.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

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
