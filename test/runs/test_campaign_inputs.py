# SPDX-License-Identifier: Apache-2.0
"""Drives by path, glob and URL: known by their content, read once, fetched whole."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.runs.campaign import bag_storage, inputs
from mt_nodes.runs.campaign.inputs import bags, drives, fetched
from mt_nodes.runs.campaign.item import Drive

LONG_AGO_NS = 10**18


def write(path: Path, text: str) -> Path:
    """Write a file that was last changed long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return path


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three bags, of one file and of two, and things that are none."""
    write(tmp_path / "drives/b.mcap", "B")
    write(tmp_path / "drives/a.db3", "A")
    write(tmp_path / "drives/run/metadata.yaml", "m")
    write(tmp_path / "drives/run/run_0.mcap", "R")
    write(tmp_path / "drives/notes.txt", "no bag")
    write(tmp_path / "drives/.hidden.mcap", "no bag")
    (tmp_path / "drives/empty").mkdir()
    return tmp_path / "drives"


def names(found: list[str], folder: Path | str) -> list[str]:
    return [bag.removeprefix(str(folder)).strip("/") for bag in found]


@pytest.mark.parametrize("pattern", ["", "/", "/*", "/**"])
def test_a_folder_and_a_glob_give_every_bag_once(folder: Path, pattern: str) -> None:
    assert names(bags(f"{folder}{pattern}"), folder) == ["a.db3", "b.mcap", "run"]


def test_one_bag_is_itself(folder: Path) -> None:
    for one in ("b.mcap", "run"):
        assert bags(f"{folder}/{one}") == [f"{folder}/{one}"] == bags(f"file://{folder}/{one}")
    assert bags(f"{folder}/run/run_0.mcap") == [f"{folder}/run/run_0.mcap"]
    (folder / "run").rename(folder / "run.mcap")  # a folder may be called so
    assert bags(f"{folder}/run.mcap") == [f"{folder}/run.mcap"]


@pytest.mark.parametrize("pattern", ["nowhere.mcap", "nowhere", "*.bag", "empty", "notes.txt"])
def test_what_names_no_bag_is_told(folder: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match=r"no bag .*" + pattern.replace("*", r"\*")):
        bags(f"{folder}/{pattern}")


def test_a_drive_is_known_by_its_content(folder: Path, tmp_path: Path) -> None:
    found = drives([f"{folder}/b.mcap", str(folder)], tmp_path / "hashes")
    assert [(d.number, Path(d.url).name) for d in found] == [(0, "b.mcap"), (1, "a.db3"), (2, "run")]
    listing = f"metadata.yaml {sha256('m')}\nrun_0.mcap {sha256('R')}\n"
    assert [d.sha256 for d in found] == [sha256("B"), sha256("A"), sha256(listing)]


@given(st.dictionaries(st.sampled_from("abcdef"), st.text("xy", max_size=3), min_size=1, max_size=4))
@settings(deadline=None, max_examples=40)
def test_bags_that_differ_in_a_name_or_a_byte_differ(tmp_path_factory: Any, files: dict[str, str]) -> None:
    place = tmp_path_factory.mktemp("bags")
    shapes = [files, {**files, "g": ""}, {name + "_": text for name, text in files.items()}]
    shapes.append({name: text + "z" for name, text in files.items()})
    for i, shape in enumerate(shapes):
        for name, text in {**shape, "metadata.yaml": ""}.items():
            write(place / str(i) / name, text)
    found = drives([str(place / str(i)) for i in range(len(shapes))], place / "hashes")
    assert len({drive.sha256 for drive in found}) == len(shapes)


def test_a_file_is_read_again_only_when_it_changed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = bag_storage.Disk.chunks
    monkeypatch.setattr(
        bag_storage.Disk, "chunks", lambda self, file: (read.append(Path(file).name), whole(self, file))[1]
    )

    def look() -> list[str]:
        read.clear()
        made = drives([str(folder)], tmp_path / "kept" / "hashes")
        return [drive.sha256 for drive in made]

    first = look()
    assert sorted(read) == ["a.db3", "b.mcap", "metadata.yaml", "run_0.mcap"]
    assert look() == first and read == []
    write(folder / "b.mcap", "b")  # as long, and as old by its clock, but in place: its inode is the same
    os.utime(folder / "b.mcap", ns=(LONG_AGO_NS + 1, LONG_AGO_NS + 1))
    assert look() == [first[0], sha256("b"), first[2]] and read == ["b.mcap"]
    (folder / "b.mcap").write_text("c")  # just now: who knows whether it changes once more
    look()
    assert look()[1] == sha256("c") and read == ["b.mcap"]


def test_a_file_that_changes_while_it_is_read_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grows(self: bag_storage.Disk, file: str) -> Iterator[bytes]:
        yield b"B"
        Path(file).write_text("longer")

    monkeypatch.setattr(bag_storage.Disk, "chunks", grows)
    with pytest.raises(InfrastructureError, match=r"b\.mcap: changed while it was read"):
        drives([f"{folder}/b.mcap"], tmp_path / "hashes")


def test_hashes_that_are_none_are_told(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "hashes", "no database, but long enough to be looked at" * 30)
    with pytest.raises(InfrastructureError, match=r"hashes: cannot be used to keep hashes: .*delete it"):
        drives([str(folder)], tmp_path / "hashes")


def test_a_path_is_not_copied(folder: Path, tmp_path: Path) -> None:
    for url in (str(folder / "b.mcap"), f"file://{folder}/b.mcap"):
        assert fetched(Drive(0, url, "0" * 64), tmp_path / "cache") == folder / "b.mcap"
    assert not (tmp_path / "cache").exists()


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder and remembers what was got."""

    got: list[str]

    def do_GET(self) -> None:
        self.got.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The folder behind HTTP: its URL, and the paths that were got."""
    got: list[str] = []
    handler = type("Remembering", (Handler,), {"got": got})
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def test_what_lies_behind_http_has_the_hashes_of_the_disk(
    served: tuple[str, list[str]], folder: Path, tmp_path: Path
) -> None:
    url, got = served
    here = drives([str(folder)], tmp_path / "hashes")
    for patterns in ([f"{url}/a.db3", f"{url}/b.mcap", f"{url}/run"], [f"{url}/*.db3", f"{url}/*.mcap", f"{url}/run"]):
        there = drives(patterns, tmp_path / "hashes")
        assert [d.sha256 for d in there] == [d.sha256 for d in here]
    got.clear()
    drives([f"{url}/b.mcap"], tmp_path / "hashes")
    assert "/b.mcap" not in got, "its Last-Modified is the same: nothing to read"
    write(folder / "b.mcap", "another")
    assert drives([f"{url}/b.mcap"], tmp_path / "hashes")[0].sha256 == sha256("another")


def test_a_url_is_fetched_once_and_whole(served: tuple[str, list[str]], tmp_path: Path) -> None:
    url, got = served
    one, two = drives([f"{url}/b.mcap", f"{url}/run"], tmp_path / "hashes")
    got.clear()
    for _ in range(2):
        assert fetched(one, tmp_path / "cache") == tmp_path / "cache" / one.sha256 / "b.mcap"
        assert fetched(one, tmp_path / "cache").read_text() == "B"
        assert sorted(p.name for p in fetched(two, tmp_path / "cache").iterdir()) == ["metadata.yaml", "run_0.mcap"]
    assert sum(path == "/b.mcap" for path in got) == 1
    assert drives([str(fetched(two, tmp_path / "cache"))], tmp_path / "hashes")[0].sha256 == two.sha256


def test_a_server_that_knows_no_ranges_is_read_from_the_beginning(
    served: tuple[str, list[str]], folder: Path, tmp_path: Path
) -> None:
    """More than a client would read ahead: this server answers with the whole file, whatever part is asked for."""
    (folder / "large.mcap").write_bytes(os.urandom(1 << 20) * 6)
    (drive,) = drives([f"{served[0]}/large.mcap"], tmp_path / "hashes")
    assert drive.sha256 == hashlib.sha256((folder / "large.mcap").read_bytes()).hexdigest()
    assert fetched(drive, tmp_path / "cache").read_bytes() == (folder / "large.mcap").read_bytes()


def test_a_url_with_a_query_is_a_bag(served: tuple[str, list[str]], tmp_path: Path) -> None:
    (drive,) = drives([f"{served[0]}/b.mcap?key=1"], tmp_path / "hashes")
    assert drive.sha256 == sha256("B")
    assert fetched(drive, tmp_path / "cache").name == "b.mcap"


def _fetch(drive: Drive, cache: Path) -> str:
    return fetched(drive, cache).read_text()


def test_several_processes_fetch_once(served: tuple[str, list[str]], tmp_path: Path) -> None:
    url, got = served
    (drive,) = drives([f"{url}/b.mcap"], tmp_path / "hashes")
    got.clear()
    with get_context("spawn").Pool(3) as pool:
        assert pool.starmap(_fetch, [(drive, tmp_path / "cache")] * 6) == ["B"] * 6
    assert sum(path == "/b.mcap" for path in got) == 1


def test_several_threads_fetch_once(served: tuple[str, list[str]], tmp_path: Path) -> None:
    url, got = served
    (drive,) = drives([f"{url}/b.mcap"], tmp_path / "hashes")
    got.clear()
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda _: _fetch(drive, tmp_path / "cache"), range(12))) == ["B"] * 12
    assert sum(path == "/b.mcap" for path in got) == 1


def test_what_a_killed_process_left_is_replaced(served: tuple[str, list[str]], tmp_path: Path) -> None:
    (drive,) = drives([f"{served[0]}/run"], tmp_path / "hashes")
    write(tmp_path / "cache" / f".{drive.sha256}.part" / "run" / "half.mcap", "torn")
    assert sorted(p.name for p in fetched(drive, tmp_path / "cache").iterdir()) == ["metadata.yaml", "run_0.mcap"]


def test_a_url_whose_content_changed_is_refused(served: tuple[str, list[str]], folder: Path, tmp_path: Path) -> None:
    (drive,) = drives([f"{served[0]}/b.mcap"], tmp_path / "hashes")
    write(folder / "b.mcap", "another")
    with pytest.raises(InfrastructureError, match=rf"b\.mcap: has SHA-256 {sha256('another')[:12]}…, expected"):
        fetched(drive, tmp_path / "cache")
    assert not (tmp_path / "cache" / drive.sha256).exists()


def test_errors_of_urls_are_for_people(served: tuple[str, list[str]], tmp_path: Path) -> None:
    url, _ = served
    with pytest.raises(UsageError, match=r"no bag http.*/gone\.mcap: there is no such file"):
        bags(f"{url}/gone.mcap")
    with pytest.raises(UsageError, match=r"no bag http.*/gone\.mcap: there is no such file"):
        fetched(Drive(0, f"{url}/gone.mcap", "0" * 64), tmp_path / "cache")
    with pytest.raises(UsageError, match=r"got no bag for http.*/gone"):
        bags(f"{url}/gone")
    with pytest.raises(UsageError, match=r"unknown protocol 'nosuch'; expected a path, or a URL such as https"):
        bags("nosuch://here/a.mcap")
    with pytest.raises(UsageError, match=r"'abfs' URLs need another package: .*adlfs"):
        bags("abfs://here/a.mcap")
    with pytest.raises(InfrastructureError, match=r"127\.0\.0\.1:1/a\.mcap: cannot be read: "):
        fetched(Drive(0, "http://127.0.0.1:1/a.mcap", "0" * 64), tmp_path / "cache")


def test_a_full_disk_is_not_taken_for_a_bad_url(served: tuple[str, list[str]], tmp_path: Path) -> None:
    (drive,) = drives([f"{served[0]}/b.mcap"], tmp_path / "hashes")
    write(tmp_path / "file", "in the way")
    with pytest.raises(InfrastructureError, match=r"cannot write results to .*file"):
        fetched(drive, tmp_path / "file" / "cache")


def test_any_protocol_of_fsspec_will_do(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/drives/x.mcap": b"X", "/drives/run/metadata.yaml": b"m", "/drives/run/run_0.mcap": b"R"})
    try:
        for pattern in ("memory://drives", "memory://drives/*"):
            found = drives([pattern], tmp_path / "hashes")
            assert [inputs.name_of(d.url) for d in found] == ["run", "x.mcap"]
        assert fetched(found[1], tmp_path / "cache").read_bytes() == b"X"
        assert (fetched(found[0], tmp_path / "cache") / "run_0.mcap").read_bytes() == b"R"
        memory.pipe("/drives/x.mcap", b"Y")
        assert drives(["memory://drives/x.mcap"], tmp_path / "hashes")[0].sha256 == sha256("Y")
    finally:
        memory.rm("/drives", recursive=True)


def test_progress_counts_to_the_end(folder: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    drives([str(folder)], tmp_path / "hashes", lambda done, count: told.append((done, count)))
    assert told == [(1, 3), (2, 3), (3, 3)]
