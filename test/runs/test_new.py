# SPDX-License-Identifier: Apache-2.0
"""``mt new``: what it writes passes its own test, ruff and mypy at once, and nothing is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bad_bags import typed
from failing_plugins import plugins_as_before

from mt_nodes.base import plugins
from mt_nodes.cli.new_command import FILES, PLUGINS, class_name

ROOT = Path(__file__).resolve().parents[2]
#: One name sorts before mt_nodes, the other one after it: imports are sorted.
NAMES = {kind: f"{'zz' if kind == 'mutation' else 'a'}_{kind}_of_mine" for kind in FILES}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one new thing of each kind, and a relation of the three plugins."""
    place = tmp_path_factory.mktemp("new")
    with pytest.MonkeyPatch.context() as patch, plugins_as_before():
        patch.chdir(place)
        for kind, name in NAMES.items():
            code, said, error = typed("new", kind, name)
            assert code == 0, error
            files = [line.removeprefix("wrote ") for line in said.splitlines() if line.startswith("wrote ")]
            assert len(files) == len(FILES[kind]) and all((place / file).is_file() for file in files)
            assert f"pytest {files[-1]}" in said
        words = [f"--{part}={NAMES[kind]}" for part, kind in PARTS.items()]
        code, _, error = typed("new", "relation", "of_all", *words, "--plugins", "mt_plugins")
        assert code == 0, error
    return place


PARTS = {"mutation": "mutation", "check": "check", "given": "condition"}


def run(place: Path, *words: str) -> str:
    env = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=place, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_written_passes_its_own_tests(written: Path) -> None:
    said = run(written, "pytest", "-q", "-p", "no:cacheprovider", "-rA", ".")
    for name in (*NAMES.values(), "of_all"):
        assert f"test_{name}.py" in said, "each kind has a test that ran"


def test_what_is_written_passes_ruff(written: Path) -> None:
    run(written, "ruff", "check", "--isolated", "--no-cache", ".")
    run(written, "ruff", "format", "--isolated", "--no-cache", "--check", ".")
    strict = "E,F,W,I,UP,B,SIM,C4,RET,PTH,PLE,PLW,BLE,N,RUF,D1"
    run(written, "ruff", "check", "--isolated", "--no-cache", "--select", strict, "--target-version", "py310", ".")


@pytest.mark.long  # mypy reads the whole package for it
def test_what_is_written_passes_mypy(written: Path) -> None:
    files = sorted(str(path.relative_to(written)) for path in written.rglob("*.py"))
    assert len(files) == 12
    said = run(written, "mypy", "--strict", "--ignore-missing-imports", "--follow-imports=silent", *files)
    assert "no issues found in 12 source files" in said


def test_a_new_plugin_is_found_by_its_name_and_its_test_is_none(written: Path) -> None:
    with plugins_as_before():
        plugins.add_directory(written / "mt_plugins")
        for kind in PLUGINS:
            assert plugins.get(f"{kind}s", NAMES[kind]) is not None
        found = {cls.__module__ for kind in plugins.KINDS for cls in plugins.catalogue(kind).values()}
    assert not [module for module in found if "test_" in module]


@pytest.mark.parametrize("kind", FILES)
def test_nothing_is_overwritten(written: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(written)
    before = {path: path.read_bytes() for path in written.rglob("*") if path.is_file()}
    with plugins_as_before():
        code, _, error = typed("new", kind, NAMES[kind])
    assert (code == 2 and f"{NAMES[kind]}." in error) or "already" in error
    assert {path: path.read_bytes() for path in written.rglob("*") if path.is_file()} == before


def test_where_one_file_exists_none_is_written(tmp_path: Path) -> None:
    (tmp_path / "test_mine_too.py").write_text("mine")
    code, _, error = typed("new", "check", "mine_too", "--dir", tmp_path)
    assert code == 2 and "test_mine_too.py exists and is not overwritten" in error
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine_too.py"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mutation", "BlindZone"), "got NAME 'BlindZone', expected small letters"),
        (("mutation", "class"), "got NAME 'class', expected small letters"),
        (("mutation", "zone_2x_4y"), "would be found as 'zone2x4y', not as 'zone_2x_4y'"),
        (("mutation", "fog"), "there is a mutation 'fog' already"),
        (("relation", "noise_outside_roi_10"), "there is a relation 'noise_outside_roi_10' already"),
        (("stack", "numpy"), "there is a Python module 'numpy' already"),
        (("check", "mine", "--mutation", "fog"), "does not take --mutation, which is for `mt new relation`"),
        (("relation", "mine", "--mutation", "fgo"), "no mutation 'fgo'; did you mean 'fog'?"),
        (("relation", "mine", "--mutation", "jpeg_compressed"), "changes no point clouds"),
        (("mutations", "mine"), "got 'mutations', expected mutation or check"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    code, _, error = typed("new", *words, "--dir", tmp_path)
    assert code == 2 and said in error
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, error = typed("new", "check", "mine", "--dir", tmp_path / "file" / "below")
    assert code in (2, 4) and "choose another --dir" in error and "Traceback" not in error


def test_a_name_and_its_class_are_each_others() -> None:
    assert class_name("blind_zone") == "BlindZone"
    for kind in PLUGINS:
        for name, cls in plugins.catalogue(f"{kind}s").items():
            assert plugins.name_of(type(class_name(name), (), {})) == plugins.name_of(cls) == name
