# SPDX-License-Identifier: Apache-2.0
"""Holds every module to the layers of the design."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mt_nodes"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROS = {
    "rclpy",
    "sensor_msgs_py",
    "rosidl_runtime_py",
    "builtin_interfaces",
    "std_srvs",
    "tf2_ros",
    "launch",
    "launch_ros",
}
HEAVY = {"open3d", "rosbags", "scipy", "shapely", "matplotlib", "jinja2", "rclpy"}
MOST_LINES = 400

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def within(path: Path, folder: str) -> bool:
    return (PACKAGE / folder) in path.parents


def imports(source: str) -> Iterator[str]:
    """First parts of the absolute imports, wherever in the file they stand."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def ros_imports(source: str) -> set[str]:
    return {module for module in imports(source) if module in ROS or module.endswith(("_msgs", "_interfaces"))}


def core_imports_of_nodes(source: str) -> set[str]:
    """Modules of ``mt_nodes.nodes`` imported when this one is (not inside a function)."""
    top = [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    return {n for n in names if n == "mt_nodes.nodes" or n.startswith("mt_nodes.nodes.")}


def prints_to_stdout(source: str) -> list[int]:
    """Lines with a ``print`` that has no ``file``: standard output belongs to the command line."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and not any(keyword.arg == "file" for keyword in node.keywords)
    ]


def public(body: list[ast.stmt]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def undocumented(source: str) -> list[str]:
    tree = ast.parse(source)
    missing = [] if ast.get_docstring(tree) else ["the module"]
    return missing + [f"{node.name} (line {node.lineno})" for node in public(tree.body) if not ast.get_docstring(node)]


def test_there_are_modules() -> None:
    assert len(MODULES) > 20


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_keeps_to_its_layer(path: Path) -> None:
    source = path.read_text()
    if not within(path, "nodes"):
        assert ros_imports(source) == set(), f"{name(path)} imports ROS; only mt_nodes/nodes/ may"
        assert core_imports_of_nodes(source) == set(), f"{name(path)} needs ROS as soon as it is imported"
    if not within(path, "cli"):
        assert prints_to_stdout(source) == [], f"{name(path)} prints; return it, and let mt_nodes/cli/ print"
    assert undocumented(source) == [], f"{name(path)}: without a docstring"
    assert len(source.splitlines()) <= MOST_LINES, f"{name(path)} is longer than {MOST_LINES} lines; split it"
    assert source.startswith("# SPDX-License-Identifier: Apache-2.0\n"), (
        f"{name(path)}: the first line must be the licence"
    )


def test_the_looks_find_what_they_look_for() -> None:
    assert ros_imports("def f():\n    from sensor_msgs.msg import PointCloud2") == {"sensor_msgs"}
    assert ros_imports("import rclpy.node, numpy") == {"rclpy"}
    assert core_imports_of_nodes("from mt_nodes.nodes.convert import x") == {"mt_nodes.nodes.convert"}
    assert core_imports_of_nodes("def f():\n    from mt_nodes.nodes import arm") == set()
    assert prints_to_stdout("x = 1\nprint(x)\nprint(x, file=y)") == [2]
    assert undocumented('"""m"""\nclass A:\n    """a"""\n    def b(self): ...\n    def _c(self): ...') == ["b (line 4)"]


def test_the_light_core_stays_light() -> None:
    light = ("errors", "seeds", "params", "plugins", "resources", "environment", "doctor")
    code = (
        f"import sys; {'; '.join(f'import mt_nodes.{m}' for m in light)}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_casts_rays_is_loaded_when_it_is_needed_and_without_what_it_draws_with() -> None:
    """Before the first bundle, by those who put objects into it; who lists relations does not pay for it."""
    code = (
        "import sys; from mt_nodes.relations.relation import shipped_relations; shipped_relations()\n"
        "assert 'open3d' not in sys.modules\n"
        "from mt_nodes.relations.pipeline import MutationPipeline\n"
        "from mt_nodes.relations.mutations.objects.object_added import ObjectAdded\n"
        "MutationPipeline([ObjectAdded()], 0, 'added')\n"
        "assert 'open3d' in sys.modules and 'dash' not in sys.modules\n"
        "from open3d.visualization.draw_plotly import Dash, html\n"
        "assert html.Div([]).children == [] and Dash('drawn').title and 'dash' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
