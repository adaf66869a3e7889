# SPDX-License-Identifier: Apache-2.0
"""The public names of ``import mt_nodes as mt``: a change is deliberate, and importing them costs nothing."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mt_nodes as mt

ROOT = Path(__file__).resolve().parents[2]
#: Semantic versioning covers this file: whoever takes a line out of it, or changes one, needs a new major version.
STORED = ROOT / "test" / "golden" / "python_surface.txt"
HEAVY = {"numpy", "scipy", "shapely", "rosbags", "open3d", "matplotlib", "cv2", "yaml", "rich", "pandas", "IPython"}


def surface() -> list[str]:
    """Every public name with what can be called or read of it."""
    return [line for name in sorted(mt.PUBLIC) for line in lines_of(name, getattr(mt, name))]


def lines_of(name: str, thing: Any) -> list[str]:
    if not inspect.isclass(thing):
        return [f"{name}{parameters(thing)}"]
    own = {
        n: v for cls in reversed(thing.__mro__) for n, v in vars(cls).items() if cls.__module__.startswith("mt_nodes.")
    }
    fields = {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
    names = sorted({*fields, *own, *getattr(thing, "_fields", ())})
    public = [n for n in names if not n.startswith("_")]
    return [name, *(f"{name}.{n}{parameters(own[n]) if inspect.isfunction(own.get(n)) else ''}" for n in public)]


def parameters(function: Any) -> str:
    """Names and kinds of parameters; a default stands as ``=``, for its value may change."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    shown = [p if p.default is p.empty else p.replace(default="") for p in bare]
    return str(signature.replace(parameters=shown, return_annotation=signature.empty)).replace("=''", "=")


def test_the_surface_is_the_stored_one() -> None:
    stored = STORED.read_text(encoding="utf-8").splitlines()
    assert surface() == stored, f"if this is meant: CHANGELOG.md, docs/python.md and {STORED.name}"


def test_the_look_sees_a_change() -> None:
    assert lines_of("f", lambda bag, *, seed=0: None) == ["f(bag, *, seed=)"]
    assert "Result.outcome" in surface() and "ChangedFrame.points_in(self, frame_id)" in surface()


def test_the_stub_has_the_types_of_these_names() -> None:
    stub = ast.parse((ROOT / "mt_nodes" / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        alias.asname: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == {name: (f"mt_nodes.{module}", name) for name, module in mt.PUBLIC.items()}


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, mt_nodes as mt; assert 'replay' in dir(mt); print(*({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(AttributeError, match="'repaly'; did you mean 'replay'"):
        mt.repaly  # type: ignore[attr-defined]  # noqa: B018
