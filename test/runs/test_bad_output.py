# SPDX-License-Identifier: Apache-2.0
"""Results that cannot be written: exit 4 and one line that names the disk; what was judged stays."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import snapshots
from bad_bags import INPROCESS, Ended, bag, replay, scans

from mt_nodes.base.jsonl import LineFile, read_lines


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield bag(tmp_path_factory.mktemp("small") / "bag", scans(4))


def one_line(ended: Ended) -> bool:
    return ended.error.startswith("mt: ") and ended.error.count("\n") == 1


def told(ended: Ended) -> str:
    """What was said, without what this disk has."""
    return re.sub(r"the disk at \S+ has [\d.]+ MB of [\d.]+ MB free", "the disk at <DISK> has <FREE> free", ended.told)


def test_out_that_is_a_file(small: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    ended = replay(tmp_path / "out", small)
    assert ended.code == 2 and one_line(ended) and (tmp_path / "out").read_text() == "precious"
    assert snapshots.matches("output: a file", told(ended), tmp_path)


def test_out_below_a_file(small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = replay(tmp_path / "file" / "out", small)
    assert ended.code == 4 and one_line(ended)
    assert snapshots.matches("output: below a file", told(ended), tmp_path)


def test_out_that_holds_another_run(small: Path, tmp_path: Path) -> None:
    first = replay(tmp_path / "out", small)
    before = (tmp_path / "out" / "result.jsonl").read_bytes()
    second = replay(tmp_path / "out", small)
    assert first.code == 3 and second.code == 2 and one_line(second)
    assert (tmp_path / "out" / "result.jsonl").read_bytes() == before
    assert snapshots.matches("output: another run", second.error, tmp_path)


@pytest.mark.parametrize(("number", "name"), [(errno.EACCES, "forbidden"), (errno.EROFS, "read only")])
def test_out_that_cannot_be_made(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, name: str
) -> None:
    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        ended = replay(tmp_path / "out", small)
    assert ended.code == 4 and one_line(ended)
    assert snapshots.matches(f"output: {name}", told(ended), tmp_path)


def fail_at(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the n-th line on nothing can be appended to a journal or ledger."""
    append, count = LineFile.append, [0]

    def full(self: LineFile, line: Any) -> str:
        count[0] += 1
        if count[0] >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return append(self, line)

    monkeypatch.setattr(LineFile, "append", full)


def test_a_disk_that_is_full_in_mid_run(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(12, monkeypatch)
    ended = replay(tmp_path / "out", small)
    assert ended.code == 4 and not ended.error and ended.reconciles(len(ended.lines)) and 3 <= len(ended.lines) < 12
    assert ended.summary is not None and "No space left on device" in ended.summary["infrastructure"]
    assert re.search(r"the disk at /\S* has [\d.]+ MB of [\d.]+ MB free", ended.told)
    assert snapshots.matches("output: full in mid-run", told(ended), tmp_path)


def test_a_disk_that_is_full_for_the_summary_too(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def full(path: Path, *args: Any, **kwargs: Any) -> int:
        if path.name.startswith(".summary.json"):  # what is to become it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, *args, **kwargs)

    monkeypatch.setattr(Path, "write_bytes", full)
    ended = replay(tmp_path / "out", small)
    assert ended.code == 4 and one_line(ended) and len(ended.lines) == 12
    assert snapshots.matches("output: full at the end", told(ended), tmp_path)


def test_a_disk_that_is_full_from_the_start(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(1, monkeypatch)
    ended = replay(tmp_path / "out", small)
    assert ended.code == 4 and one_line(ended)
    assert snapshots.matches("output: full from the start", told(ended), tmp_path)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a file system of so many bytes; only root may."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(size: int) -> Path:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "mt_test", str(disk)], capture_output=True, check=False
        )
        if made.returncode:
            pytest.skip(f"cannot mount a small tmpfs here: {made.stderr.decode().strip()}")
        return disk

    yield mount
    if disk.is_mount():
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("size", [4096, 32768, 65536])
def test_a_real_disk_that_is_full(small: Path, tiny_disk: Callable[[int], Path], size: int) -> None:
    out = tiny_disk(size) / "out"
    ended = replay(out, small)
    text = ended.error or ended.out
    assert ended.code == 4 and "Traceback" not in ended.error, ended.told
    assert "No space left on device" in text and str(out.parent) in text.replace("\n", "")
    journal = out / "result.jsonl"
    pairs = [line["pair"] for line in read_lines(journal) if line["type"] == "verdict"] if journal.exists() else []
    assert len(pairs) == len(set(pairs)) <= 12


def test_a_file_that_may_not_grow(small: Path, tmp_path: Path) -> None:
    """A quota of the user's: the same, in a process of its own."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000));"
        "from mt_nodes.cli.main import main; sys.exit(main())"
    )
    out = tmp_path / "out"
    words = [sys.executable, "-c", code, "replay", str(small), *INPROCESS, "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 4 and "Traceback" not in done.stderr and "File too large" in done.stderr + done.stdout
    assert all("crc32" in json.loads(line) for line in (out / "result.jsonl").read_text().splitlines()[:-1])


def test_no_snapshot_is_left_over() -> None:
    names = ("a file", "below a file", "another run", "forbidden", "read only", "full in mid-run", "full at the end")
    assert not snapshots.stale("output", (f"output: {name}" for name in (*names, "full from the start")))
