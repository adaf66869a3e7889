# SPDX-License-Identifier: Apache-2.0
"""Holds every module to its room: what it may import, how long it may be, and what it says of itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

grimp = pytest.importorskip("grimp", reason="import-linter is not installed; `make test` installs it")
linter = pytest.importorskip("importlinter.cli", reason="import-linter is not installed; `make test` installs it")

ROOT = Path(__file__).resolve().parents[2]
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
#: What every command loads.
LIGHT = (
    *("base.errors", "base.seeds", "base.params", "base.plugins", "base.resources", "base.environment"),
    "runs.doctor",
)
MOST_LINES = 320

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
#: What is wrong with the source of a module.
Look = Callable[[str], list[str]]


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, the module first; many looks walk them."""
    return tuple(ast.walk(ast.parse(source)))


def imports(source: str) -> Iterator[str]:
    """First parts of the absolute imports, wherever in the file they stand."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def ros_imports(source: str) -> list[str]:
    return sorted({module for module in imports(source) if module in ROS or module.endswith(("_msgs", "_interfaces"))})


def prints_to_stdout(source: str) -> list[str]:
    """Lines with a ``print`` that has no ``file``: standard output belongs to the command line."""
    return [
        f"line {node.lineno}"
        for node in nodes(source)
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
    tree = nodes(source)[0]
    assert isinstance(tree, ast.Module)
    missing = [] if ast.get_docstring(tree) else ["the module"]
    return missing + [f"{node.name} (line {node.lineno})" for node in public(tree.body) if not ast.get_docstring(node)]


def too_long(source: str) -> list[str]:
    count = len(source.splitlines())
    return [f"{count} lines"] if count > MOST_LINES else []


def without_licence(source: str) -> list[str]:
    return [] if source.startswith(": ".join(("# SPDX-License-Identifier", "Apache-2.0\n"))) else ["its first line"]


def findings(look: Look, but: str = "") -> dict[str, list[str]]:
    """What a look finds, by module, in all rooms but one."""
    modules = [path for path in MODULES if not but or PACKAGE / but not in path.parents]
    assert len(modules) > 500, "so many there are: else the look sees nothing"
    found = {str(path.relative_to(ROOT)): look(path.read_text(encoding="utf-8")) for path in modules}
    return {name: what for name, what in found.items() if what}


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Some million objects are not kept for the files that come after: the garbage collector would walk them."""
    yield
    nodes.cache_clear()
    graph.cache_clear()


@lru_cache(maxsize=1)
def graph() -> Any:
    """Every import, those in functions and those for type checkers, too."""
    return grimp.build_graph("mt_nodes", cache_dir=None)


def test_the_root_holds_rooms_alone() -> None:
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]


def test_rooms_import_downwards(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    status = linter.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert status == linter.EXIT_STATUS_SUCCESS, capfd.readouterr().out


def test_no_circle_of_modules() -> None:
    edges = {module: graph().find_modules_directly_imported_by(module) for module in graph().modules}
    assert len(edges) > 500 and "mt_nodes.base.errors" in edges["mt_nodes.base.params"]
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' imports '.join(reversed(error.args[1]))}")


def test_a_class_name_is_one_thing() -> None:
    """Of two classes in one room the module tells which is meant; of two in two rooms nothing does."""
    rooms: dict[str, set[str]] = {}
    for path in MODULES:
        for node in nodes(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms.setdefault(node.name, set()).add(path.relative_to(PACKAGE).parts[0])
    assert len(rooms) > 1000
    assert {name: sorted(where) for name, where in rooms.items() if len(where) > 1} == {}


def test_a_module_name_is_one_thing() -> None:
    """``base`` is one: the base classes of a family of plugins, which plugins of users import."""
    rooms: dict[str, set[str]] = {}
    for path in MODULES:
        rooms.setdefault(path.stem, set()).add(path.relative_to(PACKAGE).parts[0])
    assert len(rooms) > 500
    shared = {name: sorted(where) for name, where in rooms.items() if len(where) > 1}
    assert shared.keys() == {"__init__", "base"}, shared


@pytest.mark.parametrize(
    ("look", "but"),
    [(ros_imports, "nodes"), (prints_to_stdout, "cli"), (undocumented, ""), (too_long, ""), (without_licence, "")],
    ids=lambda value: getattr(value, "__name__", value or "everywhere"),
)
def test_every_module_keeps_to_the_rules_of_the_house(look: Look, but: str) -> None:
    assert findings(look, but) == {}


def test_the_looks_find_what_they_look_for() -> None:
    assert ros_imports("def f():\n    from sensor_msgs.msg import PointCloud2") == ["sensor_msgs"]
    assert ros_imports("import rclpy.node, numpy") == ["rclpy"]
    assert prints_to_stdout("x = 1\nprint(x)\nprint(x, file=y)") == ["line 2"]
    assert undocumented('"""m"""\nclass A:\n    """a"""\n    def b(self): ...\n    def _c(self): ...') == ["b (line 4)"]
    assert too_long("\n" * (MOST_LINES + 1)) and not too_long("\n" * MOST_LINES)
    assert without_licence('"""m"""\n')


def test_the_light_core_stays_light() -> None:
    loads = "; ".join(f"import mt_nodes.{module}" for module in LIGHT)
    code = f"import sys; {loads}; print(*sorted({HEAVY!r} & set(sys.modules)))"
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
