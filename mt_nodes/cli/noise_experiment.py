# SPDX-License-Identifier: Apache-2.0
"""``mt experiment noise-outside-roi [BAG…]``."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import add_fields, add_results, at_least_one, put_out, request_of
from mt_nodes.engine.plan import ReplayRequest

POINTS, PAIRS, CONFIG = (10, 100, 1000), 1000, "default"
#: Generated frames at the most, as many as the paper has; of more pairs each frame has several.
MOST_FRAMES = 1000
COLUMNS = (
    "n",
    "|O| > |O'|",
    "|O| = |O'|",
    "|O| < |O'|",
    "sign test",
    "frames",
    "drives",
    "paper >",
    "paper =",
    "paper <",
    "paper sign",
)


def add_noise_outside_roi_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request, add = ReplayRequest(bags=()), parser.add_argument
    parser.epilog = "example: mt experiment noise-outside-roi my_bag --n 10,100,1000 --pairs 300 --stack my_stack.yaml"
    bags = f"bags; without any, generated drives with as many different frames as --pairs, at most {MOST_FRAMES:,}"
    add_fields(parser, request, "bags", bags={"help": bags})
    drives = "directory of the generated drives, 2.6 MB a frame; those in it are used again (default DIR of --out)"
    add("--drives", type=Path, metavar="DIR", help=drives)
    add("--n", type=_numbers, default=POINTS, metavar="N,…", help="numbers of noise points (default 10,100,1000)")
    add("--pairs", type=at_least_one, default=PAIRS, metavar="N", help="pairs for each n (default %(default)s)")
    config = "default, zhou_sun_2019 (exact replication), or a .yaml file of your own (default %(default)s)"
    add("--config", default=CONFIG, help=config)
    add_fields(parser, request, "stack", "transport", "limit", "seed", "faults", "topics", "transforms")
    add_results(parser, prints="experiment.json", table="tables")


def run_noise_outside_roi(args: argparse.Namespace) -> int:
    """Replay with every n, print the table beside the paper's, return the run's exit code."""
    from mt_nodes.base.directories import new_directory
    from mt_nodes.cli.replay_execution import replay
    from mt_nodes.relations.relation import load_relation
    from mt_nodes.report.categories import write_figure
    from mt_nodes.report.published_tables import FILE, describe, tabulate, write_experiment, write_relations

    request = request_of(ReplayRequest, args, topics=role_topics(args.topics))
    _refuse(request, args)
    draws = _draws(request, args) if request.bags else 0
    out = new_directory(args.out)
    if not request.bags:
        request = dataclasses.replace(request, bags=_generated(args, out))
        draws = _draws(request, args)
    files = write_relations(args.config, args.n, (out / "relations").resolve())
    names = {n: load_relation(file).id for n, file in zip(args.n, files, strict=True)}
    experiment = describe(args.config, args.pairs, draws, names)
    write_experiment(out, experiment)
    summary = replay(dataclasses.replace(request, relations=files, draws=draws), str(out), quiet=True)
    table = tabulate(experiment, summary)
    write_experiment(out, table)
    figures = write_figure(table["rows"], out)
    put_out(args.json, table, lambda: _print(table, summary, out, (out / FILE, *figures)))
    return int(summary["exit_code"])


def _refuse(request: ReplayRequest, args: argparse.Namespace) -> None:
    """Refuse what is wrong with the command line before anything is generated."""
    from mt_nodes.base.errors import UsageError
    from mt_nodes.report.published_tables import write_relations
    from mt_nodes.stacks.stack import load_stack

    if request.bags and args.drives:
        raise UsageError(
            f"--drives {args.drives}: got bags beside it, expected one of both; drives are generated without bags"
        )
    load_stack(request.stack)
    with tempfile.TemporaryDirectory(prefix="mt_experiment_") as folder:
        write_relations(args.config, args.n, Path(folder))


def _generated(args: argparse.Namespace, out: Path) -> tuple[str, ...]:
    """Return the bags of generated drives."""
    import sys
    import time

    from mt_nodes.runs.replay.generated_drives import generate_drives

    frames, place = min(args.pairs, MOST_FRAMES), args.drives or out / "drives"
    print(f"generating {frames:,} frames of 64-beam LiDAR, none of them twice, in {place}", file=sys.stderr)
    begun_s = time.monotonic()
    drives = generate_drives(place.resolve(), frames)
    print(f"generated {len(drives)} drives in {time.monotonic() - begun_s:.0f} s", file=sys.stderr)
    return tuple(map(str, drives))


def _draws(request: ReplayRequest, args: argparse.Namespace) -> int:
    """Return how often each frame is used; refuse what cannot run before there is a results directory."""
    from mt_nodes.report.published_tables import draws_needed, write_relations
    from mt_nodes.runs.replay.replay_run import Run

    with tempfile.TemporaryDirectory(prefix="mt_experiment_") as folder:
        files = write_relations(args.config, args.n, Path(folder))
        run = Run.make(dataclasses.replace(request, relations=files), Path(folder))
    return draws_needed(args.pairs, run.bundles_to_come)


def _print(table: Mapping[str, Any], summary: dict[str, Any], out: Path, files: Sequence[Path]) -> None:
    from mt_nodes.cli import terminal
    from mt_nodes.cli.outcome import print_summary
    from mt_nodes.report.published_tables import OVERALL, SIGNS, categories

    rows = table["rows"]
    times = "once" if table["draws"] == 1 else f"{table['draws']} times, with different draws"
    terminal.text(f"{table['experiment']} ({table['config']}), at least {table['pairs_wanted']} pairs for each n;")
    terminal.text(f"each frame is used {times}; the paper: 1,000 pairs for each n")
    terminal.table(COLUMNS, [_row(row) for row in rows], right=COLUMNS)
    by_category = [
        (f"{row['n']:,}", name, *(str(row["counts"][name][s]) for s in SIGNS))
        for row in rows
        for name in categories([row])
        if name != OVERALL
    ]
    terminal.table(("n", "category", *COLUMNS[1:4]), by_category, right=("n", *COLUMNS[1:4]))
    print_summary(summary, out)
    terminal.text(f"table and figure: {', '.join(map(str, files))}")


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    from mt_nodes.report.published_tables import OVERALL, SIGNS

    published = row["published"]
    measured = _cells(row["counts"].get(OVERALL), row["p_sign"], SIGNS)
    paper = _cells(published and published["counts"][OVERALL], published and published["p_sign"], SIGNS)
    return (f"{row['n']:,}", *measured, str(row["frames"]), str(row["drives"]), *paper)


def _cells(counts: Mapping[str, int] | None, p: float | None, signs: Sequence[str]) -> tuple[str, ...]:
    if counts is None:
        return ("-",) * (len(signs) + 1)
    return (*(str(counts[s]) for s in signs), "-" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}")


def _numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"got '{text}', expected whole numbers separated by commas")
    return tuple(map(int, words))
