# SPDX-License-Identifier: Apache-2.0
"""README and docs say what the code does, and lead nowhere that does not exist."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from mt_nodes.base.errors import UsageError
from mt_nodes.cli import catalogue
from mt_nodes.cli.main import _parsed, _verb_first

ROOT = Path(__file__).resolve().parents[2]


@cache
def options_of(command: str) -> set[str]:
    """What a command takes, as its help says."""
    from mt_nodes.cli.main import main

    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit):
        main([command, "--help"])
    return set(re.findall(r"--[a-z]+", said.getvalue()))


def test_tables_are_those_of_the_code() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr


def test_a_stale_table_is_told(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    import make_docs

    page = "docs/stacks.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    assert make_docs.filled(text, page) == text
    assert make_docs.filled(text.replace("| `deadline_s` |", "| `deadlin_s` |"), page) == text
    assert text.replace("| `deadline_s` |", "| `deadlin_s` |") != text


@cache
def peers() -> list[dict[str, Any]]:
    data = yaml.safe_load((ROOT / "scripts" / "peer_operators.yaml").read_text(encoding="utf-8"))
    return list(data["peers"])


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: peer["name"])
def test_each_operator_of_a_peer_has_mutations_at_every_level_or_a_reason(peer: dict[str, Any]) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from peer_page import levels_of

    levels = peer["levels"]
    for operator in peer["operators"]:
        name = operator["function"]
        assert all(operator[key] for key in ("name", "function", "sensor", "severity")), name
        assert bool(operator.get("ours")) != bool(operator.get("reason")), f"{name}: mutations, or why there are none"
        assert all(bool(mutations) == bool(operator.get("ours")) for mutations in levels_of(operator, levels)), name
        measured = operator.get("measured")
        assert measured is None or len(measured["peer"]) == len(measured["ours"]) == levels, name


def test_a_wrong_row_of_a_peer_is_refused() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from peer_page import levels_of, peer_page

    for ours, says in (
        ({"fogg": {}}, "fogg"),
        ({"fog": {"visible_m": 1}}, "visible_m"),
        ({"fog": {"visibility_m": [50.0]}}, "expected 3"),
    ):
        with pytest.raises((UsageError, ValueError), match=says):
            levels_of({"name": "Fog", "ours": [ours]}, 3)
    rows = [line for line in peer_page(ROOT, make_table).splitlines() if line.startswith("| ")]
    assert len(rows) == sum(len(peer["operators"]) for peer in peers()) + 2 * len(peers())
    assert not any(not cell.strip() for row in rows for cell in row.strip("|").split(" | "))


def make_table(columns: Any, rows: Any) -> str:
    from make_docs import table

    return str(table(columns, rows))


def test_the_readme_is_a_front_door() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 250


PAGES = ["README.md", "CHANGELOG.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    assert targets or page != "README.md"
    missing = [t for t in targets if "://" not in t and not (ROOT / page).parent.joinpath(t).exists()]
    assert not missing


def test_every_mutation_is_in_the_gallery() -> None:
    from mt_nodes.base.plugins import catalogue

    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    pictures = {path.stem: path for path in (ROOT / "docs" / "gallery").iterdir()}
    shown = {"lidar", "camera", "radar"}
    found = catalogue("mutations").items()
    drawn = {name for name, cls in found if not cls.extra and shown & {*cls.sensors}}  # type: ignore[attr-defined]
    assert len(drawn) > 90
    assert set(pictures) == drawn, "type: make gallery"
    assert sorted(re.findall(r"gallery/(\w+)\.png", page)) == sorted(pictures)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures.values())
    assert sum(path.stat().st_size for path in pictures.values()) < 55_000 * len(pictures)


def test_every_recipe_names_options_that_exist() -> None:
    from mt_nodes.cli.main import COMMANDS

    pages = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    used = re.findall(r"\bmt ([a-z]+)((?: [^\n`#]*)?)", pages)
    assert len(used) > 10
    for command, words in used:
        if command not in COMMANDS:
            continue
        known = options_of("failures" if (command, *words.split()[:1]) == ("replay", "failures") else command)
        for option in re.findall(r"--[a-z]+", words):
            assert option in known, f"mt {command}{words} has no {option}"


PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def test_each_part_of_the_papers_has_a_command_or_is_open() -> None:
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in PAPERS.splitlines() if re.match(r"\| (?!part|---)", line)]
    assert len(rows) > 40 and all(len(row) == 5 for row in rows)
    assert not [row[0] for row in rows if "`mt " not in row[2] and "**open**" not in row[4]]


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`(mt [^`]+)`", PAPERS))))
def test_each_command_about_the_papers_is_one(command: str) -> None:
    words = shlex.split(command)[1:]
    if words[0] != "show":  # with words that stand for a place in results
        args = vars(_parsed(_verb_first(words)))
        for kind, key in (
            ("relations", "relations"),
            ("stacks", "stack"),
            ("faults", "fault"),
            ("principles", "principles"),
        ):
            given = args.get(key) or ()
            for name in (given,) if isinstance(given, str) else given:
                known = {*catalogue.names(kind), *catalogue.names("suites")}
                assert str(name).endswith(".yaml") or str(name) in known, f"{kind}: {name}"


def test_the_stacks_of_the_page_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mt_nodes.stacks.stack import load_stack

    page = (ROOT / "docs" / "stacks.md").read_text(encoding="utf-8")
    blocks = [b for b in re.findall(r"```yaml\n(.*?)```", page, re.S) if "callable:" in b or "command:" in b]
    stacks = []
    for i, block in enumerate(blocks):
        path = tmp_path / f"stack_{i}.yaml"
        path.write_text(block, encoding="utf-8")
        stacks.append(load_stack(str(path)))
    assert [s.inputs["lidar"] for s in stacks[:2]] == ["/sensing/lidar/points"] * 2
    assert [len(topics) for topics in stacks[2].topics.values()] == [2, 2, 2]
    assert stacks[3].inputs == {"camera": "/front/image"} and len(stacks) == 4


def test_the_camera_callable_of_the_page_says_what_its_stack_file_promises() -> None:
    page = (ROOT / "docs" / "stacks.md").read_text(encoding="utf-8")
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "def look" in b]
    names: dict[str, Any] = {}
    exec(block, names)
    said = names["look"](None)
    assert len(said.boxes) == 1 and said.control.yaw_rate_radps == 0.01


def test_the_driver_of_the_page_drives(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from mt_nodes.cli.main import main

    page = (ROOT / "docs" / "driver.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "my_driver.py").write_text(block, encoding="utf-8")
    assert main(["scenario", "--check", str(tmp_path / "my_driver.py")]) == 0
    (line,) = re.findall(r" info   given: objects .*", page)
    assert line in capfd.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "docs/relations.md"])
def test_the_relation_of_a_page_is_valid(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mt_nodes.relations.relation import load_relation

    text = (ROOT / page).read_text(encoding="utf-8")
    (block,) = [b for b in re.findall(r"```yaml\n(.*?)```", text, re.S) if "because:" in b]
    monkeypatch.chdir(tmp_path)
    (region,) = [b for b in re.findall(r"```yaml\n(.*?)```", text, re.S) if b.startswith("# my_region.yaml")]
    (tmp_path / "my_region.yaml").write_text(region, encoding="utf-8")
    (tmp_path / "relation.yaml").write_text(block, encoding="utf-8")
    assert load_relation("relation.yaml").id == "noise_behind_the_kerb"
