# SPDX-License-Identifier: Apache-2.0
"""The shape of data in a file that a program wrote: which keys, of which types; what differs is found before use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from mt_nodes.base.errors import InfrastructureError

#: A type; several types; ``[shape]``: a list of such; ``[shape, shape]``: a list of two; a mapping of keys to shapes,
#: where a key that ends in ``?`` may be missing and the key ``*`` stands for all others.
Shape = Any
NUMBER = (int, float)
TEXT_OR_NULL = (str, type(None))
_OF_JSON: frozenset[type] = frozenset({dict, list, str, int, float, bool, type(None)})


def expect_shape(value: Any, shape: Shape, where: str) -> None:
    """Refuse a value of another shape. Raises InfrastructureError."""
    if problem := mismatch(value, shape):
        raise InfrastructureError(f"{where}: not as mt_nodes writes it: {problem}; was another version used?")


def quick_test(shape: Shape) -> Callable[[Any], bool]:
    """Return a test that is true only of values of a shape, and of all that JSON brings in it.

    It takes a tenth of the time of :func:`mismatch`, which matters in a million lines, and does not say what differs.
    """
    if isinstance(shape, dict):
        return _mapping_test(shape)
    if isinstance(shape, list):
        return _list_test(shape)
    if isinstance(shape, tuple) and not all(isinstance(each, type) for each in shape):
        tests = [quick_test(each) for each in shape]
        return lambda value: any(test(value) for test in tests)
    types = _types_of(shape)
    return lambda value: type(value) in types


def mismatch(value: Any, shape: Shape) -> str:
    """Return where and how a value differs from a shape; empty if it does not."""
    if isinstance(shape, dict):
        return _mapping_mismatch(value, shape)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"got {_named(value)}, expected a list"
        if len(shape) not in (1, len(value)):
            return f"got {len(value)} values, expected {len(shape)}"
        rows = ((f"[{i}]", mismatch(row, shape[i % len(shape)])) for i, row in enumerate(value))
        return next((f"{place}{_joined(problem)}" for place, problem in rows if problem), "")
    if isinstance(shape, tuple) and not all(isinstance(each, type) for each in shape):
        problems = [mismatch(value, each) for each in shape]
        return "" if "" in problems else problems[0]
    # True is an int in Python and none in a file.
    wrong_bool = isinstance(value, bool) and bool not in (shape if isinstance(shape, tuple) else (shape,))
    if isinstance(value, shape) and not (wrong_bool and shape is not object):
        return ""
    return f"got {_named(value)}, expected {_expected(shape)}"


def _mapping_test(shape: Mapping[str, Shape]) -> Callable[[Any], bool]:
    tests = {key.removesuffix("?"): quick_test(inner) for key, inner in shape.items() if key != "*"}
    required = {key for key in shape if key != "*" and not key.endswith("?")}
    others = quick_test(shape["*"]) if "*" in shape else None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for key, inner in value.items():
            test = tests.get(key, others)
            if test is not None and not test(inner):
                return False
        return True

    return fits


def _list_test(shape: list[Shape]) -> Callable[[Any], bool]:
    types = [_types_of(each) for each in shape]
    if all(types) and len(types) > 1:
        rows = frozenset(itertools.product(*types))
        return lambda value: type(value) is list and tuple(map(type, value)) in rows
    if all(types):
        return lambda value: type(value) is list and types[0].issuperset(map(type, value))
    tests = [quick_test(each) for each in shape]
    if len(tests) == 1:
        return lambda value: type(value) is list and all(map(tests[0], value))

    def fits(value: Any) -> bool:
        lists = type(value) is list and len(value) == len(tests)
        return lists and all(test(part) for test, part in zip(tests, value, strict=True))

    return fits


def _types_of(shape: Shape) -> frozenset[type]:
    """Return the types of a shape that is nothing but types; empty otherwise."""
    types = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(each, type) for each in types):
        return frozenset()
    return _OF_JSON if object in types else frozenset(types)


def _mapping_mismatch(value: Any, shape: Mapping[str, Shape]) -> str:
    if not isinstance(value, dict):
        return f"got {_named(value)}, expected a mapping"
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if key == "*" or (name != key and name not in value):
            continue
        if name not in value:
            return f"no {name}"
        if problem := mismatch(value[name], inner):
            return f"{name}{_joined(problem)}"
    for name in value.keys() - {key.removesuffix("?") for key in shape} if "*" in shape else ():
        if problem := mismatch(value[name], shape["*"]):
            return f"{name}{_joined(problem)}"
    return ""


def _joined(problem: str) -> str:
    """Return what follows the name of a place: a place inside it, or what is wrong."""
    return problem if problem.startswith("[") else f": {problem}"


def _named(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _expected(shape: Shape) -> str:
    types = shape if isinstance(shape, tuple) else (shape,)
    return " or ".join("null" if each is type(None) else each.__name__ for each in types)
