# SPDX-License-Identifier: Apache-2.0
"""The commands of the examples and of the plugin tutorial do what their pages say; those over topics: test/ros."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import sparse_drive
from page_commands import EXAMPLES, ROOT, Typed, copy_of, files_of, follow

TUTORIAL = ROOT / "docs" / "plugins.md"


def replays(done: list[Typed]) -> list[tuple[int, bool, bool]]:
    """Exit code of each replay, and whether pairs hold, and are violated; an ERROR is told at once."""
    runs = [one for one in done if one.command.startswith("mt replay")]
    assert all(one.code == 0 for one in done if one not in runs), [o for o in done if o not in runs]
    assert not [one for one in runs if " ERROR" in one.said], runs
    return [(one.code, " HOLDS" in one.said, " VIOLATED" in one.said) for one in runs]


HOLDS, VIOLATED = (3, True, False), (3, True, True)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("stacks", [HOLDS, HOLDS]), ("relation", [HOLDS, HOLDS]), ("plugin", [HOLDS, VIOLATED])],
)
def test_the_replays_of_an_example(folder: str, expected: list[tuple[int, bool, bool]], tmp_path: Path) -> None:
    """Three frames decide nothing: exit code 3."""
    if folder == "stacks":
        pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
        pytest.importorskip("onnx", reason="the example makes its network with it")
    here = copy_of(folder, tmp_path)
    assert replays(follow(here / "README.md", here, by_topics=False)) == expected


def test_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = copy_of("campaign", tmp_path)
    page = here / "README.md"
    page.write_text(page.read_text().replace("make_drives.py\n", "make_drives.py --drives 2 --clouds 2\n"))
    _, first, again = follow(page, here, by_topics=False)
    assert first.code == again.code and "Traceback" not in first.said
    summary = json.loads((here / "night" / "summary.json").read_text())
    assert set(summary["cells"]) == {"reference_detector-seed0", "faulty-seed0"}
    assert summary["items"]["done"] == 4 and "ERROR" not in str(summary["cells"])


def test_the_tests_of_the_plugin_package() -> None:
    env = {**os.environ, "PYTHONPATH": str(EXAMPLES / "plugin"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=EXAMPLES / "plugin", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and "skipped" not in done.stdout


def test_the_package_is_found_once_pip_has_installed_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", str(EXAMPLES / "plugin"), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), str(source)], check=True, capture_output=True)
    code = (
        "from mt_nodes.base import plugins\n"
        "names = {'mutations': 'blind_zone', 'checks': 'nearest_stays', 'conditions': 'lane_occupied', "
        "'adapters': 'point_cloud_obstacles'}\n"
        "for kind, name in names.items(): print(plugins.get(kind, name).__module__)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [
        f"example_plugin.{name}" for name in ("blind_zone", "nearest_stays", "lane_occupied", "point_cloud_obstacles")
    ], done.stderr
    found = importlib.metadata.distributions(path=[str(tmp_path / "site")])
    (points,) = (one.entry_points for one in found if one.metadata["Name"] == "mt-example-plugin")
    modules = {path.stem for path in (EXAMPLES / "plugin" / "example_plugin").glob("*.py")} - {"__init__"}
    assert {point.name for point in points if point.group == "mt_nodes.plugins"} == modules


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Typed]]:
    """A directory in which somebody has followed the tutorial, and what was said."""
    here = tmp_path_factory.mktemp("tutorial")
    sparse_drive(here / "demo" / "drive", 3)
    return here, follow(TUTORIAL, here, by_topics=False)


def test_the_tutorial_finds_the_mistake(tutorial: tuple[Path, list[Typed]]) -> None:
    here, done = tutorial
    assert replays(done) == [HOLDS, VIOLATED]
    assert (here / "blind_zone.png").is_file()


def test_what_the_tutorial_writes_passes_its_tests(tutorial: tuple[Path, list[Typed]]) -> None:
    here, _ = tutorial
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "."]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    for name in ("blind_zone", "nearest_stays", "lane_occupied", "point_cloud_obstacles", "next_obstacle_stays"):
        assert f"test_{name}.py" in done.stdout


def test_the_tutorial_and_the_package_hold_the_same_code() -> None:
    files, package = files_of(TUTORIAL), EXAMPLES / "plugin"
    shared = {
        "mt_plugins/blind_zone.py": package / "example_plugin" / "blind_zone.py",
        "mt_plugins/nearest_stays.py": package / "example_plugin" / "nearest_stays.py",
        "near_ground.py": package / "near_ground.py",
        "next_obstacle_stays.yaml": package / "next_obstacle_stays.yaml",
    }
    for name, path in shared.items():
        assert files[name] == path.read_text().partition("\n")[2], name


def test_the_relation_of_the_readme_is_the_example() -> None:
    """The README's recipe has two files; both are in the example."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    relation = (EXAMPLES / "relation" / "noise_behind_the_kerb.yaml").read_text().partition("\n")[2]
    assert f"```yaml\n{relation}```" in readme
    assert f"```yaml\n{(EXAMPLES / 'relation' / 'my_region.yaml').read_text()}```" in readme


@pytest.mark.parametrize("folder", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_every_example_has_a_readme_and_is_in_the_index(folder: str) -> None:
    assert (EXAMPLES / folder / "README.md").is_file()
    assert f"({folder}/README.md)" in (EXAMPLES / "README.md").read_text()
