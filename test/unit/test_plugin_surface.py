# SPDX-License-Identifier: Apache-2.0
"""The names that plugins import: each is there, documented, and costs only itself."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mt_nodes.plugin
from mt_nodes.base import plugins

NAMES = [name for names in mt_nodes.plugin.NAMES.values() for name in names]
LOADED = """
import sys
from mt_nodes.plugin import EachCloud, param
print(*sorted({"rclpy", "scipy", "open3d", "cv2", "rosbags"} & set(sys.modules)))
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_documented_and_the_one_of_its_module(name: str) -> None:
    value = getattr(mt_nodes.plugin, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value) and value.__module__.startswith("mt_nodes.")
    assert name in dir(mt_nodes.plugin)


def test_type_checkers_see_what_runs() -> None:
    tree = ast.parse(Path(str(mt_nodes.plugin.__file__)).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    seen = sorted(
        (str(node.module).removeprefix("mt_nodes."), alias.asname) for node in imports for alias in node.names
    )
    assert seen == sorted((module, name) for module, names in mt_nodes.plugin.NAMES.items() for name in names)


@pytest.mark.parametrize("kind", plugins.KINDS)
def test_the_base_class_of_every_kind_of_plugin_is_there(kind: str) -> None:
    base = plugins.load(plugins.KINDS[kind][0])
    assert getattr(mt_nodes.plugin, base.__name__) is base


def test_a_name_that_is_not_there_is_answered_with_a_similar_one() -> None:
    with pytest.raises(AttributeError, match="has no 'EachClouds'; did you mean 'EachCloud'"):
        mt_nodes.plugin.EachClouds  # noqa: B018


def test_a_base_class_imports_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
