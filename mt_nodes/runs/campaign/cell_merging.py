# SPDX-License-Identifier: Apache-2.0
"""From the directories of items to that of a cell: what one replay of all its drives would have left.

Items come in plan order and the summary last, so that a merge that was killed is made anew and comes to the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from mt_nodes.base.jsonl import seal, unseal
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.ledger import DRAWS
from mt_nodes.engine.ledger import FILE as LEDGER
from mt_nodes.engine.run_record import STACK_FILE, read_record, write_sealed
from mt_nodes.engine.score_file import FILE as SCORES
from mt_nodes.engine.score_file import read_scores
from mt_nodes.engine.summary.deaths import TYPE as DEATH
from mt_nodes.relations.relation import CONTROL, SHAMS
from mt_nodes.runs.campaign.campaign_plan import Cell, relation_files
from mt_nodes.runs.campaign.item import Drive

JOURNAL, SUMMARY, EVIDENCE = "result.jsonl", "summary.json", "evidence"
TRANSFORMS = "transforms.yaml"


@dataclass(frozen=True)
class CellPiece:
    """What goes into a cell: a drive's number, the directory of its item, and the relations that count of it."""

    drive: int
    directory: Path
    relations: frozenset[str]

    def wants(self, pair: Pair) -> bool:
        """Whether a verdict, or a follow-up, of this pair counts; one of control or sham serves every relation."""
        if "@" not in pair.draw and pair.relation in (CONTROL, *SHAMS):
            return bool(self.relations)
        return pair.judged_for in self.relations


def merge(out: Path, cell: Cell, drives: Sequence[Drive], pieces: Sequence[CellPiece], relations: Path) -> None:
    """Make a cell's journal, ledger, draws, evidence and record of its pieces.

    ``drives``: of the plan: the bags of the run that this stands for. ``pieces``: in plan order. ``relations``:
    directory of the relations that do not ship.
    """
    for name in (EVIDENCE, DRAWS):
        (out / name).mkdir(parents=True, exist_ok=True)
    (out / SUMMARY).unlink(missing_ok=True)
    for name in (STACK_FILE, TRANSFORMS):
        shutil.copyfile(pieces[0].directory / name, out / name)
    _write_record(out, cell, drives, pieces, relations)
    with _whole(out / JOURNAL) as file:
        file.write(seal(_condition(drives, cell, pieces)) + "\n")
        for piece in pieces:
            _take_verdicts(piece, out, file)
    _write_scores(pieces, out)
    with _whole(out / LEDGER) as file:
        for piece in pieces:
            _take_followups(piece, out, file)


def _write_record(out: Path, cell: Cell, drives: Sequence[Drive], pieces: Sequence[CellPiece], relations: Path) -> None:
    first = read_record(pieces[0].directory)
    topics = {name: roles for piece in pieces for name, roles in read_record(piece.directory)["topics"].items()}
    request = replace(
        cell.request,
        bags=tuple(drive.url for drive in drives),
        relations=relation_files(cell.relations, cell.texts, relations),
    )
    record = {**first, "request": request.as_plain(), "topics": topics, "relations": _all_judges(pieces)}
    record.pop("resumed", None)
    write_sealed(out, record)


def _all_judges(pieces: Sequence[CellPiece]) -> list[Any]:
    """Return control, sham and every relation, as far as any piece has it."""
    found: dict[str, Any] = {}
    for piece in pieces:
        for judge in read_record(piece.directory)["relations"]:
            found.setdefault(judge["id"], judge)
    return list(found.values())


def _condition(drives: Sequence[Drive], cell: Cell, pieces: Sequence[CellPiece]) -> dict[str, Any]:
    """Return what the journal begins with: that of the first piece, for all drives and relations."""
    with (pieces[0].directory / JOURNAL).open(encoding="utf-8") as file:
        condition = unseal(file.readline().rstrip("\n"), f"{file.name}:1")
    condition.pop("first_episode", None)
    return {**condition, "bags": [drive.url for drive in drives], "relations": list(cell.relations)}


def _write_scores(pieces: Sequence[CellPiece], out: Path) -> None:
    """Write the scores that the stack published, of each drive those of its first piece: every one has them."""
    of_drives = {piece.drive: piece for piece in reversed(pieces) if (piece.directory / SCORES).is_file()}
    if of_drives:
        with _whole(out / SCORES) as file:
            for drive in sorted(of_drives):
                for line in read_scores(of_drives[drive].directory):
                    file.write(seal(line) + "\n")


def _take_verdicts(piece: CellPiece, out: Path, file: IO[str]) -> None:
    """Write the verdicts of a piece that count, and link the evidence of violated ones."""
    violated = set()
    for text, line in _counted_lines(piece, JOURNAL):
        file.write(f"{text}\n")
        if line.get("outcome") == Outcome.VIOLATED.value:
            violated.add(line["pair"].replace("/", "_"))
    for source in sorted((piece.directory / EVIDENCE).iterdir()) if violated else ():
        if source.stem in violated:
            _link(source, out / EVIDENCE / source.name)


def _take_followups(piece: CellPiece, out: Path, file: IO[str]) -> None:
    """Write the follow-ups of a piece that count, and link what was drawn for them."""
    for text, line in _counted_lines(piece, LEDGER):
        file.write(f"{text}\n")
        for entry in (line, line.get("baseline", {})):
            if name := entry.get("arrays"):
                _link(piece.directory / name, out / name)


def _counted_lines(piece: CellPiece, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of an item's file that count, as they are and read; a torn last one is left out.

    A death of the stack always counts, even where its pair does not any more.
    """
    path = piece.directory / name
    if not path.exists():  # it failed before it had any
        return
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            text = raw[:-1].decode()
            line = unseal(text, f"{path}:{number}")
            if line.get("type") == DEATH or ("pair" in line and piece.wants(Pair.parse(line["pair"]))):
                yield text, line


def _link(source: Path, target: Path) -> None:
    if target.exists() and target.samefile(source):
        return
    fresh = target.with_name(f".{target.name}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        os.link(source, fresh)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, fresh)
    fresh.replace(target)


@contextmanager
def _whole(path: Path) -> Iterator[IO[str]]:
    """Yield a file that takes the place of another when it is complete."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as file:
        yield file
    fresh.replace(path)
