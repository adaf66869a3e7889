# SPDX-License-Identifier: Apache-2.0
"""Whether a results directory is as it was written: checksums, totals, and follow-ups made again; for archives."""

from __future__ import annotations

import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import ASIDE
from mt_nodes.base.errors import MtError
from mt_nodes.base.jsonl import KEY, read_lines, read_result
from mt_nodes.base.plain_data import PlainData
from mt_nodes.data.bags.reader import BagReader
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.finish import read_summary, sum_up
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import FILE as LEDGER
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.engine.results_dirs import cells_of
from mt_nodes.engine.run_record import FILE as RECORD
from mt_nodes.engine.run_record import read_record
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.engine.used_intensities import FILE as INTENSITIES
from mt_nodes.runs.again.regeneration import made_again, run_of_results
from mt_nodes.runs.campaign.campaign_store import FILE as STORE
from mt_nodes.runs.campaign.campaign_store import CampaignStore
from mt_nodes.runs.campaign.cost import FILE as COST
from mt_nodes.runs.moral.report_journal import is_campaign

JOURNAL, SUMMARY = "result.jsonl", "summary.json"
#: These always have a checksum; of another one it may be the key of the checksum that is damaged.
_SEALED = (RECORD, SUMMARY, COST, INTENSITIES)
#: What is counted again from the journal, of the run and of each relation.
_TOTALS, _COUNTS = ("offered", "outcomes"), ("violated", "decided", "lost", "gained")


@dataclass(frozen=True)
class Verification(PlainData):
    """One kind of check of one directory: how much was checked, what is wrong, and why something was not checked."""

    directory: str
    what: str
    checked: int
    wrong: tuple[str, ...] = ()
    unchecked: str = ""


def verify(directory: Path) -> Iterator[Verification]:
    """Yield the checks of a results directory, of a campaign also those of its cells."""
    for place in (directory, *cells_of(directory).values()):
        yield _files(place)
        if (place / STORE).is_file():
            yield _guarded("totals", _campaign_totals, place)
        if (place / JOURNAL).is_file():
            yield _guarded("totals", _totals, place)
            yield _guarded("follow-ups", _followups, place)
        elif _sums_up_pairs(place):
            yield Verification(str(place), "totals", 0, (f"{place / JOURNAL}: is not there, and the summary is of it",))


def _sums_up_pairs(place: Path) -> bool:
    """Whether a directory without cells has a summary of judged pairs; that of `mt inline` or a search is another."""
    try:
        return not cells_of(place) and "offered" in read_result(place / SUMMARY)
    except MtError:  # the check of files tells it
        return False


def _guarded(what: str, check: Callable[[Path], Verification], place: Path) -> Verification:
    try:
        return check(place)
    except MtError as error:
        return Verification(str(place), what, 0, (str(error),))


def _files(place: Path) -> Verification:
    """Check what has a checksum: lines, results in JSON, archives of arrays, bags; those of a cell are the cell's.

    What somebody was writing aside when it was killed is no result.
    """
    cells = set(cells_of(place).values())
    checked, wrong = 0, []
    for path in sorted(p for p in place.rglob("*") if p.is_file() and not cells & set(p.parents)):
        if any(part.startswith(ASIDE) for part in path.relative_to(place).parts):
            continue
        problem = damage(path)
        if problem is not None:
            checked += 1
            wrong += [problem] if problem else []
    if not checked:
        wrong.append(f"{place}: holds no file with a checksum; expected a results directory")
    return Verification(str(place), "files", checked, tuple(wrong))


def damage(path: Path) -> str | None:
    """Return what is wrong with a file, empty if nothing is; None where it has no checksum."""
    try:
        if path.suffix == ".jsonl":
            if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
                return f"{path}: its last line is cut off"
            for _ in read_lines(path):
                pass
        elif path.name in _SEALED or (path.suffix == ".json" and f'"{KEY}"' in path.read_text("utf-8")):
            read_result(path)
        elif path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                broken = archive.testzip()
            return f"{path}: {broken} does not match its checksum" if broken else ""
        elif path.suffix == ".mcap":
            with BagReader(path) as bag:
                deque(bag.wires(), maxlen=0)
        elif path.name == STORE:
            with CampaignStore(path, read_only=True) as store:
                store.plan()
                return store.problem
        else:
            return None
    except (MtError, OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        return str(error) if str(path) in str(error) else f"{path}: {error}"
    return ""


def _campaign_totals(place: Path) -> Verification:
    """Compare the counts of a campaign's summary with those of its cells, which are counted again from journals."""
    if not (place / SUMMARY).exists():
        return Verification(str(place), "totals", 0, unchecked=f"it was not summed up; `mt report {place}` does that")
    cells = {name: read_summary(cell) for name, cell in cells_of(place).items()}
    judged = {name: row for name, row in read_result(place / SUMMARY).get("cells", {}).items() if row["offered"]}
    wrong = [
        f"{place / SUMMARY}: cell {name}: has other counts than its own {SUMMARY}, or one of the two is missing"
        for name in sorted(cells.keys() | judged.keys())
        if _counted(cells.get(name)) != _counted(judged.get(name))
    ]
    return Verification(str(place), "totals", len(cells), tuple(wrong))


def _counted(summary: dict[str, Any] | None) -> Any:
    """Return the counts of a summary. Waivers, which may be applied to a cell alone, change outcomes and no counts."""
    if summary is None:
        return None
    rows = {name: [row.get(key) for key in _COUNTS] for name, row in summary["relations"].items()}
    return [summary[key] for key in _TOTALS], rows


def _totals(place: Path) -> Verification:
    """Count the verdicts of the journal again, and compare with the summary."""
    if is_campaign(place):
        return Verification(str(place), "totals", 0, unchecked="those of a moral campaign are of drives, not of pairs")
    summary, infos = read_summary(place), read_record(place)["relations"]
    again = sum_up(place, [RelationInfo.of(row) for row in infos if row["id"] in summary["relations"]])
    # Waivers and whatever cut a run short are not in its journal, but may turn an outcome.
    plain = not any(summary.get(note) for note in ("waivers", "infrastructure", "interrupted", "isolation", "deaths"))
    wrong = [
        f"{name}: {summary.get(name)}, {again[name]} by the journal" for name in _TOTALS if summary[name] != again[name]
    ]
    for relation, row in summary["relations"].items():
        counted = again["relations"].get(relation, {})
        names = (*_COUNTS, *(("outcome",) if plain else ()))
        wrong += [
            f"{relation}.{n}: {row[n]}, {counted.get(n)} by the journal" for n in names if row[n] != counted.get(n)
        ]
    claims = summary.get("claims", {}), again.get("claims", {})
    wrong += [
        f"claim {name}: {claims[0].get(name)}, {claims[1].get(name)} by the journal"
        for name in dict.fromkeys((*claims[0], *claims[1]))
        if claims[0].get(name) != claims[1].get(name)
    ]
    return Verification(
        str(place), "totals", int(again["offered"]), tuple(f"{place / SUMMARY}: {one}" for one in wrong)
    )


def _followups(place: Path) -> Verification:
    """Make every follow-up of a replay again from its draws, and compare its SHA-256 with the ledger's."""
    request = read_record(place)["request"]
    recorded = {line["pair"] for line in read_ledger(place)} if (place / LEDGER).is_file() else set()
    total = len(recorded)
    if "bags" not in request:
        return Verification(str(place), "follow-ups", 0, unchecked=f"{total} of a run whose input is not a bag")
    if lost := sorted(judged_followups(place) - recorded):
        text = f"{place / LEDGER}: lacks {len(lost)} follow-ups that were judged, such as {lost[0]}"
        return Verification(str(place), "follow-ups", total, (text,))
    run = run_of_results(place)
    if isinstance(run, str):
        return Verification(str(place), "follow-ups", 0, unchecked=f"{total}: {run}")
    checked, wrong = 0, []
    for remade in made_again(run, place):
        checked += 1
        if remade.wrong:
            wrong.append(f"{remade.pair}: {remade.wrong}")
    if checked != total:
        wrong.append(f"{place / LEDGER}: has {total} follow-ups, {checked} belong to bundles of its bags")
    return Verification(str(place), "follow-ups", checked, tuple(wrong))


def judged_followups(place: Path) -> set[str]:
    """Return the follow-ups of bundles whose answers were judged, by the journal."""
    lines = (line for line in read_journal(place / JOURNAL) if line.get("outcome") in ("HOLDS", "VIOLATED"))
    pairs = (Pair.parse(line["pair"]).followup for line in lines)
    return {str(pair) for pair in pairs if pair.bundle is not None}
