# SPDX-License-Identifier: Apache-2.0
"""setup.py, package.xml and constraints.txt against each other, the files of the tree and what the code imports."""

from __future__ import annotations

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import setuptools  # noqa: F401  (brings distutils where Python no longer has it)
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import mt_nodes
from mt_nodes.nodes.node_interfaces import NODES

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12")
RCLPY, INTERFACES = "ros-jazzy-rclpy", "ros-jazzy-common-interfaces"
#: imported module -> (key in package.xml, requirement in setup.py; None: not on PyPI, so its import must be optional)
DEPENDENCIES: dict[str, tuple[str, str | None]] = {
    "argcomplete": ("python3-argcomplete", "argcomplete"),
    "builtin_interfaces": ("builtin_interfaces", RCLPY),
    "cv2": ("python3-opencv", "opencv-python-headless"),
    "diagnostic_msgs": ("diagnostic_msgs", INTERFACES),
    "geometry_msgs": ("geometry_msgs", INTERFACES),
    "jinja2": ("python3-jinja2", "jinja2"),
    "lark": ("python3-lark-parser", "lark-parser"),
    "launch": ("launch", None),
    "launch_ros": ("launch_ros", None),
    "matplotlib": ("python3-matplotlib", "matplotlib"),
    "nav_msgs": ("nav_msgs", INTERFACES),
    "numpy": ("python3-numpy", "numpy"),
    "open3d": ("python3-open3d-pip", "open3d"),
    "rcl_interfaces": ("rcl_interfaces", RCLPY),
    "rclpy": ("rclpy", RCLPY),
    "rich": ("python3-rich", "rich"),
    "rosbags": ("python3-rosbags-pip", "rosbags"),
    "rosgraph_msgs": ("rosgraph_msgs", RCLPY),
    "rosidl_runtime_py": ("rosidl_runtime_py", None),
    "scipy": ("python3-scipy", "scipy"),
    "sensor_msgs": ("sensor_msgs", INTERFACES),
    "sensor_msgs_py": ("sensor_msgs_py", None),
    "shapely": ("python3-shapely", "shapely"),
    "sklearn": ("python3-sklearn", "scikit-learn"),
    "std_msgs": ("std_msgs", INTERFACES),
    "std_srvs": ("std_srvs", INTERFACES),
    "tf2_msgs": ("tf2_msgs", None),
    "visualization_msgs": ("visualization_msgs", INTERFACES),
    "yaml": ("python3-yaml", "pyyaml"),
}
#: imported where it is installed -> the extra of setup.py that brings it, and what it is called there
OPTIONAL = {
    "PIL": ("diffusion", "pillow"),
    "asyncssh": ("cluster", "asyncssh"),
    "backports": ("cluster", "backports.zstd"),
    "IPython": ("python", "ipython"),
    "cloudpickle": ("python", "cloudpickle"),
    "cryptography": ("evidence", "cryptography"),
    "dask": ("cluster", "dask"),
    "diffusers": ("diffusion", "diffusers"),
    "onnx": ("models", "onnx"),
    "transformers": ("diffusion", "transformers"),
    "distributed": ("cluster", "distributed"),
    "faiss": ("vectors", "faiss-cpu"),
    "fsspec": ("cluster", "fsspec"),
    "gherkin": ("gherkin", "gherkin-official"),
    "krippendorff": ("agreement", "krippendorff"),
    "lanelet2": ("maps", "lanelet2"),
    "pyxodr": ("maps", "pyxodr"),
    "carla": ("carla", "carla"),
    "google": ("awsim", "protobuf"),
    "hypothesis": ("property", "hypothesis"),
    "kiss_icp": ("motion", "kiss-icp"),
    "openai": ("llm", "openai"),
    "optuna": ("search", "optuna"),
    "pandas": ("python", "pandas"),
    "pyarrow": ("parquet", "pyarrow"),
    "pytest": ("test", "pytest"),
    "reqif": ("evidence", "reqif"),
    "rfc3161_client": ("evidence", "rfc3161-client"),
    "rtamt": ("claims", "rtamt"),
    "scenariogeneration": ("openscenario", "scenariogeneration"),
    "stringzilla": ("speed", "stringzilla"),
    "torch": ("models", "torch"),
    "torchvision": ("models", "torchvision"),
    "zmq": ("awsim", "pyzmq"),
}


@pytest.fixture(scope="module")
def distribution() -> Any:
    """What setup.py says, without building."""
    from distutils.core import run_setup

    before = Path.cwd()
    os.chdir(ROOT)
    try:
        return run_setup("setup.py", stop_after="init")
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def manifest() -> ET.Element:
    return ET.parse(ROOT / "package.xml").getroot()


def requirements(distribution: Any) -> list[Requirement]:
    """What is always installed; some setuptools keep those with a marker among the extras, under ``:marker``."""
    extras = distribution.extras_require.items()
    texts = [*distribution.install_requires, *(r for extra, rs in extras if extra.startswith(":") for r in rs)]
    return [Requirement(text) for text in texts]


def pins() -> list[Requirement]:
    lines = (line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def shipped(folder: str, pattern: str) -> set[str]:
    return {str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob(pattern) if p.is_file()}


def test_every_config_and_launch_file_is_installed_in_its_folder(distribution: Any) -> None:
    targets = {file: target for target, files in distribution.data_files for file in files}
    expected = shipped("config", "*") | shipped("launch", "*.launch.py")
    assert expected >= {"config/dds/fastdds_profile.xml", "config/regions/front_40m.yaml"}
    for file in expected:
        assert targets[file] == f"share/mt_nodes/{Path(file).parent}"
    assert targets["resource/mt_nodes"] == "share/ament_index/resource_index/packages"
    assert targets["package.xml"] == "share/mt_nodes"


def test_every_package_directory_is_installed(distribution: Any) -> None:
    directories = {p.parent for p in (ROOT / "mt_nodes").rglob("*.py")}
    assert set(distribution.packages) == {".".join(d.relative_to(ROOT).parts) for d in directories}


def test_the_version_is_the_same_everywhere(distribution: Any, manifest: ET.Element) -> None:
    assert distribution.metadata.version == manifest.findtext("version") == mt_nodes.__version__


def test_every_command_exists(distribution: Any) -> None:
    commands = dict(re.split(r"\s*=\s*", line) for line in distribution.entry_points["console_scripts"])
    nodes = {"replayer", "mutator", "monitor", "suite", "live_suite", "watch_suite"}
    nodes |= {"callable_stack", "clock_echo", "simulator"}
    assert set(commands) == {"mt", "mt-nodes", *nodes}
    assert nodes == set(NODES), "each answers --help"
    for target in commands.values():
        module, _, function = target.partition(":")
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, target


def test_the_manifest_is_an_ament_python_package(manifest: ET.Element) -> None:
    assert manifest.get("format") == "3"
    assert manifest.findtext("export/build_type") == "ament_python"
    assert manifest.findtext("license") == "Apache-2.0"
    keys = [e.text for e in manifest if e.tag.endswith("depend")]
    assert len(keys) == len(set(keys))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all of them, also within others; looking into their expressions as ``ast.walk`` does takes four times."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(tree, block, ())
        for one in inside if isinstance(inside, list) else ():
            yield one
            yield from statements(one)


def test_whatever_the_code_imports_is_declared_twice(distribution: Any, manifest: ET.Element) -> None:
    keys = {e.text for e in manifest.iter("exec_depend")}
    required = {canonicalize_name(r.name) for r in requirements(distribution)}
    for path in (ROOT / "mt_nodes").rglob("*.py"):
        for node in statements(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            for module in {m.partition(".")[0] for m in modules} - {"mt_nodes", "__future__"} - sys.stdlib_module_names:
                if module in OPTIONAL:
                    extra, wanted = OPTIONAL[module]
                    assert wanted in {Requirement(text).name for text in distribution.extras_require[extra]}
                    continue
                assert module in DEPENDENCIES, f"{path.name} imports {module}: declare it and add it here"
                key, requirement = DEPENDENCIES[module]
                assert key in keys, f"{path.name} imports {module}: package.xml lacks {key}"
                assert requirement is None or requirement in required, f"setup.py lacks {requirement}"


def test_every_requirement_has_one_pin_on_every_python(distribution: Any) -> None:
    both = [*distribution.extras_require["test"], *distribution.extras_require["parquet"]]
    extras = [Requirement(text) for text in (*both, "setuptools", "wheel")]
    for wanted in (*requirements(distribution), *extras):
        for python in PYTHONS:
            environment = {"python_version": python, "python_full_version": f"{python}.0"}
            found = [
                pin
                for pin in pins()
                if canonicalize_name(pin.name) == canonicalize_name(wanted.name)
                and (pin.marker is None or pin.marker.evaluate(environment))
            ]
            assert len(found) == 1, f"{wanted.name} on Python {python}: {len(found)} pins in constraints.txt"
            assert wanted.specifier.contains(str(found[0].specifier).removeprefix("==")), f"{wanted} against {found[0]}"


def test_pins_are_exact_and_come_from_any_index() -> None:
    for pin in pins():
        assert pin.url is None
        assert re.fullmatch(r"==[\w.+!]+", str(pin.specifier)), pin


def test_scripts_can_be_run() -> None:
    for path in (*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci" / "run"):
        assert os.access(path, os.X_OK), path
        subprocess.run(["bash", "-n", str(path)], check=True)


def test_the_set_up_never_calls_sudo() -> None:
    """It may only say it."""
    for path in (*(ROOT / "scripts").glob("*.sh"), ROOT / "Makefile", ROOT / ".ci" / "run"):
        for line in path.read_text().splitlines():
            command = line.strip().removeprefix("@")
            assert command.startswith(("#", "echo")) or "sudo" not in command, f"{path.name}: {line}"


def test_a_python_without_wheels_is_refused_with_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    env = {**os.environ, "PYTHON": str(old)}
    done = subprocess.run([ROOT / "scripts" / "find_python.sh"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "make PYTHON=" in done.stderr


def run_system_packages(place: Path, user: int) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run it as ``user`` with an empty linker cache; return also the calls of a stand-in for apt-get."""
    calls = place / "calls"
    calls.touch()
    for program, body in {"ldconfig": "exit 0", "apt-get": f'echo "$@" >> "{calls}"'}.items():
        (place / program).write_text(f"#!/bin/sh\n{body}\n")
        (place / program).chmod(0o755)
    script = place / "system_packages.sh"
    script.write_text((ROOT / "scripts" / script.name).read_text().replace("$EUID", str(user)))
    shutil.copy(ROOT / "scripts" / "find_python.sh", place)
    env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PYTHON": sys.executable}
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, check=False)
    return done, calls.read_text().splitlines()


LIBRARIES = "libusb-1.0-0 libgl1 libegl1 libgomp1 libx11-6"


def test_an_ordinary_user_is_told_one_command(tmp_path: Path) -> None:
    done, calls = run_system_packages(tmp_path, 1000)
    typed = f"sudo apt-get update && sudo apt-get install -y --no-install-recommends {LIBRARIES}"
    assert done.returncode == 1 and typed in done.stderr
    assert calls == []


def test_root_gets_what_is_missing(tmp_path: Path) -> None:
    done, calls = run_system_packages(tmp_path, 0)
    assert done.returncode == 0, done.stderr
    assert calls == ["update -qq", f"install -y -qq --no-install-recommends {LIBRARIES}"]


def test_sdist_and_wheel_hold_everything(tmp_path: Path) -> None:
    pytest.importorskip("wheel", reason="needs setuptools and wheel in this environment, as `make test` has them")
    tree, named = tmp_path / "tree", f"mt_nodes-{mt_nodes.__version__}"
    leave_out = shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", "site", "build", "dist", ".*_cache", ".hypothesis"
    )
    shutil.copytree(ROOT, tree, ignore=leave_out)
    (sdist,) = _build(tree, "build_sdist", tmp_path)
    with tarfile.open(sdist) as archive:
        packed = {name.removeprefix(f"{named}/") for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    folders = ("mt_nodes", "config", "launch", "test", "scripts", "docs", "examples", "LICENSES", ".devcontainer")
    wanted = {file for folder in folders for file in shipped(folder, "*") if "__pycache__" not in file}
    files = {"CHANGELOG.md", "SECURITY.md", "REUSE.toml", "constraints.txt", "Containerfile", "package.xml"}
    assert wanted | files <= packed
    (wheel,) = _build(tmp_path / named, "build_wheel", tmp_path)
    with zipfile.ZipFile(wheel) as file:
        inside = set(file.namelist())
        about = email.message_from_bytes(file.read(f"{named}.dist-info/METADATA"))
    data = f"{named}.data/data/share/mt_nodes"
    expected = {f"{data}/{file}" for file in shipped("config", "*") | shipped("launch", "*.launch.py")}
    expected |= {f for f in shipped("mt_nodes", "*") if "__pycache__" not in f}
    assert expected <= inside
    assert about["Description-Content-Type"] == "text/markdown" and str(about.get_payload()).startswith("# mt_nodes")
    assert "Apache-2.0" in (about["License-Expression"] or about["License"]) and about["Maintainer-email"]


def _build(tree: Path, what: str, place: Path) -> list[Path]:
    """Build as `python -m build` does, with the setuptools of this environment."""
    script = f"import sys; from setuptools import build_meta; build_meta.{what}(sys.argv[1])"
    out = place / what
    out.mkdir()
    subprocess.run([sys.executable, "-c", script, str(out)], cwd=tree, check=True, capture_output=True)
    return list(out.iterdir())
