# SPDX-License-Identifier: Apache-2.0
"""``mt campaign FILE``: many drives, stacks, relations and seeds, in worker processes; resumable after any kill."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.cli.options import at_least_one, put_out, real_number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mt_nodes.runs.campaign.campaign_view import WatchedCampaign
    from mt_nodes.runs.campaign.conductor import PlannedCampaign
    from mt_nodes.runs.campaign.file import Campaign

#: Printed reasons after the table; the reports have all.
MAX_REASONS = 12
#: Relations of each cell whose cost is printed; ``cost.json`` has all.
MAX_COSTS = 5
COLUMNS = ("cell", "relation", "outcome", "violated", "drives", "stopped")
_minutes = real_number("a number of minutes from 0 to 1,000,000", lambda value: 0.0 <= value <= 1e6)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt campaign night.yaml --workers 4 --minutes 480"
    add = parser.add_argument
    add("file", type=Path, nargs="?", metavar="FILE", help="YAML file of the campaign")
    add(
        "--out",
        metavar="DIR",
        help="directory of the campaign (default mt_results/<time>); a campaign that is there goes on",
    )
    add("--resume", type=Path, metavar="DIR", help="go on with the campaign in DIR, without its file")
    add("--workers", type=at_least_one, metavar="N", help="parallel workers, in place of the file's")
    add("--minutes", type=_minutes, metavar="M", help="begin no replay after M minutes, in place of the file's")
    add(
        "--pairs",
        type=at_least_one,
        metavar="N",
        help="judge about N pairs at most, in whole drives, in place of the file's",
    )
    add("--limit", type=at_least_one, metavar="N", help="use at most N bundles of each drive, in place of the file's")
    add("--failures", action="store_true", help="store violated pairs, for `mt replay --failures` to replay them")
    add("--failures-file", type=Path, metavar="FILE", help="database of --failures (default mt_failures.sqlite)")
    add("--json", action="store_true", help="print summary.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Execute a campaign, print its outcome, return its exit code."""
    from mt_nodes.base.processes import flag_of_signals
    from mt_nodes.cli.campaign_progress import progress
    from mt_nodes.runs.campaign.conductor import conduct

    planned = _planned(args)
    interrupted = flag_of_signals()
    with progress(planned.items, hidden=args.json) as show:
        summary = conduct(planned, interrupted.is_set, show)
    put_out(args.json, summary, lambda: print_campaign(summary, planned.out))
    if args.failures:
        from mt_nodes.cli.failures_command import store_campaign

        store_campaign(planned.out, args.failures_file, quiet=args.json)
    return int(summary["exit_code"])


def _planned(args: argparse.Namespace) -> PlannedCampaign:
    from mt_nodes.runs.campaign.conductor import begin, resume
    from mt_nodes.runs.campaign.file import Campaign

    def changed(campaign: Campaign) -> Campaign:
        given = {name: getattr(args, name) for name in ("minutes", "pairs") if getattr(args, name) is not None}
        workers = args.workers or campaign.workers
        return dataclasses.replace(campaign, budget=dataclasses.replace(campaign.budget, **given), workers=workers)

    if args.failures_file and not args.failures:
        raise UsageError("--failures-file goes with --failures")
    if args.resume:
        if args.file or args.out or args.limit:
            raise UsageError("--resume goes on with the campaign in DIR; leave FILE, --out and --limit out")
        return resume(args.resume.resolve(), changed)
    if args.file is None:
        raise UsageError("got no file; type `mt campaign FILE`, or `mt campaign --resume DIR`")
    campaign = Campaign.load(args.file)
    return begin(dataclasses.replace(campaign, limit=args.limit or campaign.limit), args.out, changed)


def print_campaign(summary: Mapping[str, Any], out: Path) -> None:
    """Print a row for each relation of each cell, the reasons, what failed, and where the results are."""
    from mt_nodes.cli.terminal import paragraph, table, text
    from mt_nodes.engine.summary.undecided_reasons import over_all

    rows = [_row(cell, name, r) for cell, found in summary["cells"].items() for name, r in found["relations"].items()]
    if rows:
        table(COLUMNS, rows, right=COLUMNS[3:])
        for line in _reasons(summary["cells"]):
            paragraph(line)
        for line in over_all(r for found in summary["cells"].values() for r in found["relations"].values()):
            paragraph(line)
    for note in summary["campaign"]["notes"]:
        paragraph(f"note: {note}")
    for failed in summary["campaign"]["failed"]:
        paragraph(f"failed: {failed['url']} in cell {failed['cell']}: {failed['trouble']}")
    for each in summary["campaign"].get("failed_tries", ()):
        paragraph(f"drive {each['drive']} in cell {each['cell']}: {each['why']} (failed attempts: {each['attempts']})")
    counts = ", ".join(f"{count} {state}" for state, count in summary["items"].items() if count)
    paragraph(f"{counted(summary['campaign']['drives'], 'drive')}, items: {counts or 'none'}")
    for line in _costs(out):
        paragraph(line)
    paragraph(f"exit code {summary['exit_code']}: {summary['exit_why']}")
    text(f"results in {out}, those of each cell in {out / 'cells'}, report: {out / 'report.html'}")
    _print_next(out)


def _costs(out: Path) -> Iterator[str]:
    """Yield a line for each cell with what it took."""
    from mt_nodes.runs.campaign.cost import read_cost

    for name, cost in read_cost(out)["cells"].items():
        if cost["pairs_per_worker_hour"] is None:
            continue
        stored = f"{cost['record_bytes_per_pair'] / 1e3:.1f} kB a pair" if cost["pairs"] else "nothing judged"
        evidence = cost["evidence_gb_per_1000_violated"]
        kept = "" if evidence is None else f", {evidence:.2f} GB of evidence for 1,000 violated pairs"
        hours = f"{cost['seconds'] / 3600.0:.2f} worker hours, {cost['pairs_per_worker_hour']:,.0f} pairs an hour"
        yield f"cost of {name}: {hours}{_core_hours(cost.get('cpu'))}, {stored}{kept}"
        yield from _costs_of_relations(name, cost.get("relations", {}), (cost.get("cpu") or {}).get("relations", {}))


def _core_hours(cpu: Mapping[str, Any] | None) -> str:
    """Return what was measured of the processor time of a cell or a relation, empty where nothing was."""
    rate = cpu and cpu["pairs_per_core_hour"]
    return f", {rate:,.0f} pairs a core hour" if rate else ""


def _costs_of_relations(
    cell: str, relations: Mapping[str, Mapping[str, Any]], cpu: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a line for each of the relations of a cell that took most; all are in the file."""
    by_work = sorted(relations.items(), key=lambda item: -item[1].get("work_s", 0.0))
    for name, row in by_work[:MAX_COSTS]:
        if (an_hour := row.get("pairs_per_hour")) is None:
            continue
        evidence = row["evidence_gb_per_1000_violated"]
        kept = "" if evidence is None else f", {evidence:.2f} GB of evidence for 1,000 violated pairs"
        rates = f"{an_hour:,.0f} pairs an hour{_core_hours(cpu.get(name))}"
        yield f"of it {name} in {cell}: {row['work_s'] / 3600.0:.2f} hours, {rates}{kept}"


def _print_next(out: Path) -> None:
    """Print what the worst cell comes to, and what to type next; resuming, where the campaign did not end."""
    from mt_nodes.base.jsonl import read_result
    from mt_nodes.cli.outcome import print_next
    from mt_nodes.engine.results_dirs import cells_of

    summaries = {place: path for place in cells_of(out).values() if (path := place / "summary.json").is_file()}
    cells = [(place, read_result(path)) for place, path in summaries.items()]
    if cells:
        print_next(*max(cells, key=lambda cell: worst_rate(cell[1])))


def worst_rate(summary: Mapping[str, Any]) -> tuple[bool, float]:
    """Return whether a relation fails, and the largest share of violated pairs among those that do, or all."""
    relations = summary["relations"].values()
    failing = [r for r in relations if r["outcome"] == "FAIL" and not r.get("waived")]
    return bool(failing), max((r["rate"] or 0.0 for r in failing or relations), default=0.0)


def _reasons(cells: Mapping[str, Any]) -> list[str]:
    """Return why relations do not PASS and what would decide, FAIL first, at most :data:`MAX_REASONS`."""
    from mt_nodes.cli.outcome import reasons

    found = [
        (relation["outcome"] != "FAIL", f"{cell}: {line}")
        for cell, each in cells.items()
        for name, relation in each["relations"].items()
        for line in reasons({name: relation})
    ]
    lines = [line for _, line in sorted(found, key=lambda row: row[0])]
    more = len(lines) - MAX_REASONS
    return lines[:MAX_REASONS] + ([f"… and {more} more, in the reports of the cells"] if more > 0 else [])


def _row(cell: str, name: str, relation: Mapping[str, Any]) -> tuple[str, ...]:
    stopped = relation.get("sequential", {}).get("stopped_after")
    return (
        cell,
        name,
        relation["outcome"] + (" (waived)" if relation.get("waived") else ""),
        f"{relation['violated']}/{relation['decided']}",
        str(relation["drives"]),
        "-" if stopped is None else f"after {stopped}",
    )


def report(directory: Path, args: argparse.Namespace) -> int:
    """Make the report of a campaign again."""
    from mt_nodes.cli.terminal import text
    from mt_nodes.report.campaign_page import write_campaign_page
    from mt_nodes.runs.campaign.conductor import sum_up
    from mt_nodes.runs.campaign.cost import read_cost

    if args.waivers or args.drive or args.pair:
        cells = directory / "cells"
        raise UsageError(
            f"{directory}: holds a campaign; --waivers, --drive and --pair are for one of its cells, {cells}/*"
        )
    if not (directory / "summary.json").exists():  # it was killed
        sum_up(directory)
    text(str(write_campaign_page(directory, read_cost(directory))))
    return 0


def progress_text(watched: WatchedCampaign) -> RenderableType:
    """Return the progress of a campaign as text."""
    from rich.text import Text

    standing, summary = watched.standing, watched.summary()
    states = ", ".join(f"{count} {state}" for state, count in standing.items.items())
    done = f"{standing.over} of {counted(sum(standing.items.values()), 'item')} finished ({states})"
    lines = [f"campaign over {counted(watched.drives, 'drive')}: {done}"]
    lines.append(f"{counted(standing.pairs, 'pair')} judged, {standing.violated} violated")
    if summary is not None:
        when = "ended" if watched.finished else "running; last summary"
        lines.append(f"{when} with exit code {summary['exit_code']}: {summary['exit_why']}")
    return Text("\n".join(lines))
