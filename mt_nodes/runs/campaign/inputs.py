# SPDX-License-Identifier: Apache-2.0
"""The drives of a campaign: what patterns name, known by the SHA-256 of their content; and local copies of URLs.

A bag of one file has the SHA-256 of that file (what ``sha256sum`` says). A bag that is a folder has that of one line
for each file in it but hidden ones, in the order of their names: ``<name> <SHA-256 of the file>``. A drive of a data
set has that of its options and of such lines for the files that it is made of, with their paths within the data set.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import in_utf8
from mt_nodes.data.datasets.dataset_name import DatasetName, is_dataset
from mt_nodes.data.datasets.known_datasets import recording_files, recordings
from mt_nodes.runs.campaign.bag_storage import SUFFIXES, RemoteFolder, is_url, local_path, name_of, places_of
from mt_nodes.runs.campaign.item import Drive

METADATA = "metadata.yaml"
#: Bags that are read side by side: hashing lets other threads run, and far ones mostly wait.
_AT_A_TIME = 8
#: A file changed so lately could change again within the grain of its clock: its hash is not kept.
_SETTLED_NS = 2_000_000_000
_TABLE = "CREATE TABLE IF NOT EXISTS files (place TEXT PRIMARY KEY, identity TEXT NOT NULL, sha256 TEXT NOT NULL)"


def drives(
    patterns: Sequence[str], cache: Path, progress: Callable[[int, int], None] = lambda done, count: None
) -> list[Drive]:
    """Return the drives that patterns name, in their order, matches of one by name; a place counts once.

    Raises UsageError: a pattern names no bag, a protocol is unknown or needs a package. InfrastructureError: a bag
    cannot be read, or changed while it was.

    Args:
        patterns: paths or URLs of bags, of folders that hold bags (without ``metadata.yaml`` of their own), or globs.
        cache: SQLite file of hashes by place and identity; made where there is none.
        progress: called with drives hashed, and drives.
    """
    found = list(dict.fromkeys(bag for pattern in patterns for bag in bags(pattern)))
    result: list[Drive] = []
    with Hashes(cache) as hashes, ThreadPoolExecutor(_AT_A_TIME) as pool:
        for number, (url, sums) in enumerate(zip(found, pool.map(hashes.look_up, found), strict=True)):
            hashes.keep(sums)
            result.append(Drive(number, url, _content_of(url, sums)))
            progress(len(result), len(found))
    return result


def bags(pattern: str) -> list[str]:
    """Return the bags that a path, URL, folder or glob names, by name; of a data set all drives that a name stands for.

    Raises UsageError: none.
    """
    if is_dataset(pattern):
        return recordings(pattern)
    pattern = local_path(pattern)
    places = places_of(pattern)
    if _is_glob(pattern):
        found = [bag for match in places.glob(pattern) for bag in _bags_at(places, match, alone=False)]
        folders = {bag for bag in found if not places.is_bag_file(bag)}
        found = [bag for bag in found if bag.rpartition("/")[0] not in folders]  # a file of a bag is no further bag
    else:
        found = _bags_at(places, pattern.rstrip("/"), alone=True)
    if not found:
        hint = f"expected {', '.join(SUFFIXES)}, a folder with {METADATA}, or a folder of such"
        raise UsageError(f"got no bag for {pattern}; {hint}")
    return list(dict.fromkeys(found))


def fetched(drive: Drive, cache_dir: Path) -> Path:
    """Return the path of a drive on this machine; that of a URL is a copy in ``cache_dir/<SHA-256>``, made once.

    The copy appears whole or not at all, whoever is killed; several processes may ask for it at the same time.
    Raises UsageError: the protocol is unknown or needs a package, or there is no such file. InfrastructureError: it
    cannot be read or kept, or its content is not the drive's.
    """
    if not is_url(drive.url) or drive.url.startswith("file://"):
        return Path(local_path(drive.url))
    home, name = cache_dir / drive.sha256, name_of(drive.url) or "bag"
    if not home.is_dir():
        with _write_errors(cache_dir):
            cache_dir.mkdir(parents=True, exist_ok=True)
        with (cache_dir / f".{drive.sha256}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process fetches, the others wait for it
            if not home.is_dir():
                _fetch(drive, cache_dir / f".{drive.sha256}.part", name)
                (cache_dir / f".{drive.sha256}.part").rename(home)
    return home / name


def _fetch(drive: Drive, part: Path, name: str) -> None:
    """Copy a drive into a folder, in place of what a process that was killed left there; prove its content."""
    shutil.rmtree(part, ignore_errors=True)
    places = places_of(drive.url)
    single = places.is_bag_file(drive.url)
    files = [drive.url] if single else places.files(drive.url)
    sums = []
    for file in files:
        target = part / name if single else part / name / name_of(file)
        sums.append((file, "", _copied(places, file, target)))
    if (got := _content(sums, single)) != drive.sha256:
        shutil.rmtree(part, ignore_errors=True)
        raise InfrastructureError(
            f"{drive.url}: has SHA-256 {got[:12]}…, expected {drive.sha256[:12]}… as when the campaign was planned"
        )


def _copied(places: RemoteFolder, file: str, target: Path) -> str:
    """Copy a file and return the SHA-256 of what was written."""
    digest = hashlib.sha256()
    with _write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as copy:
            for chunk in places.chunks(file):
                digest.update(chunk)
                copy.write(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def _bags_at(places: RemoteFolder, place: str, *, alone: bool) -> list[str]:
    """Return what bags a place is or, asked for ``alone``, holds."""
    if places.is_bag_file(place):
        if alone and not places.exists(place):
            raise UsageError(f"no bag {place}: there is no such file")
        return [place]
    if places.exists(f"{place}/{METADATA}"):
        return [place]
    inner = [*places.folders(place), *places.files(place)] if alone else []
    return sorted(bag for one in inner for bag in _bags_at(places, one, alone=False))


def _is_glob(pattern: str) -> bool:
    """Whether it stands for several; a question mark begins the query of a URL."""
    return any(sign in pattern for sign in ("*[" if is_url(pattern) else "*?["))


Sum = tuple[str, str, str]
"""File, identity (empty: the sum is not to be kept), SHA-256."""


class Hashes:
    """SHA-256 of files, read again only when their identity has changed; a context manager."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._store = sqlite3.connect(path, timeout=60.0)
            with self._store:
                self._store.execute(_TABLE)
            self._known = {row[0]: row[1:] for row in self._store.execute("SELECT place, identity, sha256 FROM files")}
        except (OSError, sqlite3.Error) as error:
            raise InfrastructureError(f"{path}: cannot be used to keep hashes: {error}; delete it") from error

    def __enter__(self) -> Hashes:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def look_up(self, bag: str) -> list[Sum]:
        """Return the sums of a bag's files in the order of their names; any thread may ask.

        Raises InfrastructureError: a file cannot be read, or changed while it was.
        """
        places = places_of(bag)
        if is_dataset(bag):
            files = [str(file) for file in recording_files(bag)]
        else:
            files = [bag] if places.is_bag_file(bag) else places.files(bag)
        return [self._sum(places, file) for file in files]

    def keep(self, sums: Sequence[Sum]) -> None:
        """Remember sums, in the thread that made this."""
        rows = [(in_utf8(name), identity, sha256) for name, identity, sha256 in sums]
        fresh = [row for row in rows if row[1] and self._known.get(row[0]) != row[1:]]
        with self._store:
            self._store.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", fresh)

    def _sum(self, places: RemoteFolder, file: str) -> Sum:
        identity, name = places.identity(file), file if is_url(file) else os.path.abspath(file)  # noqa: PTH100
        known = self._known.get(in_utf8(name))
        if identity and known and known[0] == identity:
            return name, identity, known[1]
        digest = hashlib.sha256()
        for chunk in places.chunks(file):
            digest.update(chunk)
        if places.identity(file) != identity:
            raise InfrastructureError(f"{file}: changed while it was read; wait until it is written, then try again")
        return name, identity if _settled(file) else "", digest.hexdigest()


def _settled(file: str) -> bool:
    return is_url(file) or time.time_ns() - Path(file).stat().st_mtime_ns > _SETTLED_NS


def _content_of(url: str, sums: Sequence[Sum]) -> str:
    """Return the SHA-256 of a bag, or of a drive of a data set, from those of its files."""
    if not is_dataset(url):
        return _content(sums, places_of(url).is_bag_file(url))
    name = DatasetName.parse(url)
    home = os.path.abspath(name.directory)  # noqa: PTH100  links stay, as in the sums
    known = [f"{name.dataset} {sorted(name.options.items())}\n"]
    known += sorted(f"{os.path.relpath(file, home)} {sha256}\n" for file, _, sha256 in sums)
    return hashlib.sha256(os.fsencode("".join(known))).hexdigest()


def _content(sums: Sequence[Sum], single: bool) -> str:
    """Return the SHA-256 of a bag from those of its files."""
    if single:
        return sums[0][2]
    lines = sorted(f"{name_of(file)} {sha256}\n" for file, _, sha256 in sums)
    return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()
