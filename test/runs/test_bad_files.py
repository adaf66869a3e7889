# SPDX-License-Identifier: Apache-2.0
"""Files that people write, and numbers that they type: what cannot be used is refused in one line."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import snapshots
from bad_bags import Ended, bag, replay, scans, typed

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import LARGEST_BYTES
from mt_nodes.nodes.qos import load_overrides

RELATION = """id: mine
kind: necessary
because: for tests
mutate: [{noise_outside_roi: {points: 10}}]
check: obstacles_kept
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
#: The kinds of files, and how each is given to `mt replay`.
KINDS = {
    "relation": ("--relations", RELATION),
    "suite": ("--suite", "relations: [noise_outside_roi_10]\n"),
    "stack": ("--stack", "callable: mt_nodes.stacks.reference.detector:Detector\nstateless: true\n"),
    "transforms": ("--transforms", "- {parent: base_link, child: lidar, translation_m: [0, 0, 1.7]}\n"),
    "waivers": ("--waivers", "- {relation: mine, reason: known, expires: 2999-01-01}\n"),
    "qos": ("--qos", "/points: {depth: 5}\n"),
    "region": ("", "frame_id: base_link\nbox_m: {x: [0, 40], y: [-10, 10]}\n"),
}
#: What can be wrong with any file -> its bytes, made of those of a good one.
ANY = {
    "UTF-16": lambda good: good.encode("utf-16"),
    "Latin-1": lambda good: b"# f\xfcr Tests\n" + good.encode(),
    "a tab": lambda good: b"a:\n\tb: 1\n",
    "no YAML": lambda good: b"{a: [",
    "an alias bomb": lambda good: BOMB.encode(),
    "an alias to itself": lambda good: b"a: &a [*a]\n",
    "too deep": lambda good: b"[" * 100_000 + b"]" * 100_000,
    "too large": lambda good: b"# " + b"x" * LARGEST_BYTES + b"\n" + good.encode(),
    "control characters": lambda good: b"a: \x00\n",
    "a date that is none": lambda good: b"a: 2027-13-41\n",
    "a Python object": lambda good: b"!!python/object/apply:os.system ['true']\n",
}
LISTS = ("transforms", "waivers")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield bag(tmp_path_factory.mktemp("small") / "bag", scans(1))


def use(kind: str, file: Path, small: Path, place: Path) -> Ended:
    """Replay with a file of this kind."""
    option, _ = KINDS[kind]
    if kind == "region":
        relation = place / "with_region.yaml"
        relation.write_text(RELATION.replace("points: 10", f"points: 10, region: '{file}'"))
        option, file = "--relations", relation
    words = [option, str(file)]
    if kind in ("suite", "relation", "region"):
        code, out, error = typed("replay", small, "--transport", "inprocess", *words, "--out", place / "out")
        return Ended(code, out, error, place / "out", None, ())
    return replay(place / "out", small, *words)


def processor_s() -> float:
    """Return the seconds that this process and those that it has waited for have computed."""
    return sum(os.times()[:4])


def refused(ended: Ended) -> bool:
    assert ended.code == 2 and ended.summary is None, ended.told
    assert ended.error.startswith("mt: ") and ended.error.count("\n") == 1 and len(ended.error) < 1000
    return True


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "qos"])
def test_good_files_are_used(small: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"{kind}.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + KINDS[kind][1].encode())
    assert use(kind, file, small, tmp_path).code == 3, "too few pairs for more; a byte order mark of UTF-8 is none"


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "qos"])
@pytest.mark.parametrize("wrong", ANY)
def test_no_kind_of_file_gets_past_with(small: Path, tmp_path: Path, kind: str, wrong: str) -> None:
    file = tmp_path / f"{kind}.yaml"
    file.write_bytes(ANY[wrong](KINDS[kind][1]))
    began, began_s = time.monotonic(), processor_s()
    ended = use(kind, file, small, tmp_path)
    assert refused(ended) and str(file) in ended.error
    assert processor_s() - began_s < 5, "what a file costs, however busy the machine is"
    assert time.monotonic() - began < 120, "it hangs"
    if kind == "stack":
        assert snapshots.matches(f"file: {wrong}", ended.told, tmp_path)


#: What is wrong with one kind of file.
FILES: dict[str, tuple[str, str]] = {
    **{f"empty {kind}": (kind, "") for kind in KINDS if kind not in (*LISTS, "qos")},
    **{f"a list as {kind}": (kind, "- 1\n") for kind in KINDS if kind not in (*LISTS, "qos")},
    **{f"a mapping as {kind}": (kind, "a: 1\n") for kind in LISTS},
    **{f"an unknown key in {kind}": (kind, KINDS[kind][1] + "chekc: 1\n") for kind in ("relation", "suite", "stack")},
    "an unknown key in region": ("region", KINDS["region"][1] + "frameid: base\n"),
    "an unknown key in transforms": ("transforms", "- {parent: a, child: b, translation_m: [0, 0, 0], rpy: 0}\n"),
    "an unknown key in waivers": ("waivers", "- {relation: mine, reason: x, expire: 2999-01-01}\n"),
    "a key twice in relation": ("relation", RELATION + "kind: expected\n"),
    "a key twice in stack": ("stack", KINDS["stack"][1] + "stateless: false\n"),
    "a key twice below": ("relation", RELATION.replace("points: 10", "points: 10, points: 1000")),
    "numbers of another kind": ("relation", RELATION.replace("points: 10", "points: ten")),
    "points below nothing": ("relation", RELATION.replace("points: 10", "points: -5")),
    "points of a fraction": ("relation", RELATION.replace("points: 10", "points: 1.5")),
    "too many points": ("relation", RELATION.replace("points: 10", "points: 1000000000000")),
    "points that are no number": ("relation", RELATION.replace("points: 10", "points: .nan")),
    "a text as mutate": ("relation", RELATION.replace("[{noise_outside_roi: {points: 10}}]", "noise_outside_rio")),
    "a number as suite": ("suite", "relations: 5\n"),
    "a number as deadline": ("stack", KINDS["stack"][1] + "deadline_s: soon\n"),
    "a translation of two": ("transforms", "- {parent: a, child: b, translation_m: [0, 0]}\n"),
    "a translation of texts": ("transforms", "- {parent: a, child: b, translation_m: [a, b, c]}\n"),
    "a translation that is not finite": ("transforms", "- {parent: a, child: b, translation_m: [.nan, 0, 0]}\n"),
    "a quaternion of nothing": (
        "transforms",
        "- {parent: a, child: b, translation_m: [0, 0, 0], quaternion_xyzw: [0, 0, 0, 0]}\n",
    ),
    "transforms in a circle": (
        "transforms",
        "- {parent: lidar, child: base_link, translation_m: [0, 0, 0]}\n"
        "- {parent: base_link, child: lidar, translation_m: [0, 0, 0]}\n",
    ),
    "a region that crosses itself": ("region", "frame_id: base_link\npolygon_m: [[0, 0], [4, 3], [4, 0], [0, 2]]\n"),
    "a region without corners": ("region", "frame_id: base_link\npolygon_m: []\n"),
    "a region of two corners": ("region", "frame_id: base_link\npolygon_m: [[0, 0], [2, 2]]\n"),
    "a region with a corner that is none": ("region", "frame_id: base_link\npolygon_m: [[0, 0], [2, 2], [.nan, 0]]\n"),
    "a region without area": ("region", "frame_id: base_link\npolygon_m: [[0, 0], [2, 2], [4, 4]]\n"),
    "a region of texts": ("region", "frame_id: base_link\npolygon_m: [[a, b], [c, d], [e, f]]\n"),
    "a region the wrong way round": ("region", "frame_id: base_link\nbox_m: {x: [40, 0], y: [-10, 10]}\n"),
    "a region that is not finite": ("region", "frame_id: base_link\nbox_m: {x: [0, .inf], y: [-10, 10]}\n"),
    "a region below and above nothing": ("region", KINDS["region"][1] + "z_m: [.nan, 2]\n"),
    "a region smaller than its inset": ("region", "frame_id: base_link\nbox_m: {x: [0, 1], y: [0, 1]}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_what_cannot_be_meant_is_refused_in_one_line(small: Path, tmp_path: Path, name: str) -> None:
    kind, text = FILES[name]
    file = tmp_path / f"{kind}.yaml"
    file.write_text(text)
    if kind == "region":  # the noise needs none of the inset, so the check has the region, too
        relation = tmp_path / "both.yaml"
        both = RELATION.replace("points: 10", f"points: 10, region: '{file}'")
        relation.write_text(both.replace("check: obstacles_kept", f"check: {{obstacles_kept: {{region: '{file}'}}}}"))
        kind, file = "relation", relation
    ended = use(kind, file, small, tmp_path)
    assert refused(ended)
    assert snapshots.matches(f"file: {name}", ended.told, tmp_path, small.parent)


QOS = {
    "no depth": "/points: {depth: 0}\n",
    "an unknown policy": "/points: {reliability: relaible}\n",
    "an unknown key": "/points: {dept: 5}\n",
    "a list": "- /points\n",
    "a number": "/points: 5\n",
    "an empty file": "",
}


@pytest.mark.parametrize("name", QOS)
def test_profiles_that_are_none_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "qos.yaml").write_text(QOS[name])
    with pytest.raises(UsageError) as caught:
        load_overrides(tmp_path / "qos.yaml")
    assert snapshots.matches(f"file: qos, {name}", str(caught.value), tmp_path)


@pytest.mark.parametrize("kind", ["stack", "transforms", "waivers", "suite"])
def test_what_is_no_file_is_refused(small: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "directory.yaml").mkdir()
    assert refused(use(kind, tmp_path / "directory.yaml", small, tmp_path))
    assert refused(use(kind, tmp_path / "none.yaml", small, tmp_path))


def _forbidden(file: Path, read: Any, path: Path) -> Any:
    if path == file:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return read(path)


def test_a_file_without_permission_is_refused(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "transforms.yaml"
    file.write_text(KINDS["transforms"][1])
    file.chmod(0)
    if os.access(file, os.R_OK):  # root reads everything
        read = Path.read_bytes
        monkeypatch.setattr(Path, "read_bytes", lambda path: _forbidden(file, read, path))
    ended = use("transforms", file, small, tmp_path)
    assert refused(ended) and snapshots.matches("file: no permission", ended.told, tmp_path)


def test_a_region_that_holds_everything_leaves_no_room(small: Path, tmp_path: Path) -> None:
    region = tmp_path / "everything.yaml"
    region.write_text("frame_id: base_link\nbox_m: {x: [-1000, 1000], y: [-1000, 1000]}\n")
    relation = tmp_path / "relation.yaml"
    relation.write_text(RELATION.replace("points: 10", f"points: 10, region: '{region}'"))
    ended = use("relation", relation, small, tmp_path)
    assert ended.code == 3 and "1 NOT_APPLICABLE" in ended.out, ended.out


NUMBERS: dict[str, tuple[str, ...]] = {
    "--limit": ("0", "-1", "x", "1.5", "", "²", "nan", "9" * 5000),
    "--draws": ("0", "-1", "1000000000000", "x", "9" * 5000),
    "--seed": ("x", "1.5", "", "9" * 5000),
    "--rate": ("0", "-1", "nan", "inf", "x"),
}


@pytest.mark.parametrize(("option", "given"), [(option, given) for option in NUMBERS for given in NUMBERS[option]])
def test_a_number_that_cannot_be_meant_is_refused(small: Path, tmp_path: Path, option: str, given: str) -> None:
    ended = replay(tmp_path / "out", small, f"{option}={given}")
    assert ended.code == 2 and not ended.lines and not (tmp_path / "out").exists()
    last = ended.error.strip().splitlines()[-1]
    assert last.startswith(("mt: ", "mt replay: error: argument ")) and option in last and len(last) < 200
    assert snapshots.matches(f"number: {option} {given:.9}", last, tmp_path)


@pytest.mark.parametrize("words", [("--limit", "9" * 30), ("--seed=-1",), ("--seed", "9" * 60), ("--draws", "3")])
def test_a_number_that_is_unusual_is_taken(small: Path, tmp_path: Path, words: Any) -> None:
    assert replay(tmp_path / "out", small, *words).outcomes["HOLDS"] >= 3


def test_no_snapshot_is_left_over() -> None:
    files = [*ANY, *FILES, *(f"qos, {name}" for name in QOS), "no permission"]
    assert not snapshots.stale("file", (f"file: {name}" for name in files))
    numbers = (f"number: {option} {given:.9}" for option in NUMBERS for given in NUMBERS[option])
    assert not snapshots.stale("number", numbers)
