# SPDX-License-Identifier: Apache-2.0
"""``mt review DIR``."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.engine.plan import TRANSPORTS

if TYPE_CHECKING:
    from mt_nodes.runs.review.ratings import Ratings
    from mt_nodes.runs.review.sample import Sample

#: Default numbers of cases, and of ratings of each.
_CASES, _RATERS = 20, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt review mt_results/latest --cases 30"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a run")
    add("--cases", type=int, metavar="N", help=f"cases to rate (default {_CASES})")
    add("--seed", type=int, metavar="N", help="seed of the random choice of cases (default 0)")
    add("--raters", type=int, metavar="N", help=f"people who rate each case (default {_RATERS})")
    add("--port", type=int, default=0, metavar="P", help="port of the local page (default: any free one)")
    add("--page", type=Path, metavar="FILE", help="write the page to a file for others, instead of serving it")
    about = "import ratings that others downloaded from such a page, instead of serving one"
    add("--import", dest="imported", type=Path, nargs="+", default=[], metavar="FILE", help=about)
    add("--summary", action="store_true", help="summarise the ratings so far, in review.json and review.html")
    add(
        "--transport",
        default="",
        choices=TRANSPORTS,
        metavar="T",
        help="ros, inprocess: for pairs that must be replayed to be shown",
    )
    add("--bag", default="", metavar="BAG", help="path of the bag of a run with one bag, where it has moved")
    add("--json", action="store_true", help="with --summary: print JSON")


def run(args: argparse.Namespace) -> int:
    """Have people rate cases, import their ratings, or summarise them."""
    from mt_nodes.runs.review.ratings import FILE, Ratings
    from mt_nodes.runs.review.sample import FOLDER

    folder = args.dir / FOLDER
    sample = _sample(args, folder)
    if args.page:
        return _write_page(args, sample)
    if args.summary and not args.imported:
        return _summarise(args, sample, folder)
    with Ratings(folder / FILE, (case.id for case in sample.cases)) as ratings:
        if not args.imported:
            return _serve(args, sample, ratings)
        _import_ratings(args.imported, sample, ratings)
    return _summarise(args, sample, folder) if args.summary else int(ExitCode.PASS)


def _sample(args: argparse.Namespace, folder: Path) -> Sample:
    """Return the sample of cases; draw it if there is none."""
    from mt_nodes.runs.review.sample import FILE, Sample

    sample = Sample.load(folder)
    if sample is None:
        if args.imported or args.summary:
            raise UsageError(f"{folder / FILE}: no such file, nothing is rated; begin with `mt review {args.dir}`")
        return _draw_sample(args, folder)
    options = {"cases": sample.asked, "seed": sample.seed, "raters": sample.raters}
    for name, was in options.items():
        if getattr(args, name) not in (None, was):
            raise UsageError(
                f"--{name}: the review in {folder} has {was}; leave --{name} out to go on with it, or move it away"
            )
    return sample


def _draw_sample(args: argparse.Namespace, folder: Path) -> Sample:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.replay_execution import replay
    from mt_nodes.cli.terminal import text
    from mt_nodes.engine.run_record import read_record
    from mt_nodes.runs.review.case_files import Shower
    from mt_nodes.runs.review.sample import draw, shares

    raters = _RATERS if args.raters is None else args.raters
    if raters < 1:
        raise UsageError(f"--raters: got {raters}, expected 1 or more")
    shares_by_kind = shares(_CASES if args.cases is None else args.cases)
    record = read_record(args.dir)
    if args.bag and len(record["request"].get("bags", ())) != 1:
        raise UsageError("--bag is for runs with one bag; leave it out")
    becauses = {row["id"]: row.get("because", "") for row in record["relations"]}
    show = Shower(args.dir, lambda request, out: replay(request, str(out), quiet=True), args.transport, args.bag)
    text("preparing the cases; pairs without evidence are replayed")
    with _progress(sum(shares_by_kind.values())) as tried:
        sample = draw(args.dir, becauses, shares_by_kind, lambda case: tried(show(case)), args.seed or 0, raters)
    sample.save(folder)
    strata = ", ".join(f"{name} {sum(case.stratum == name for case in sample.cases)}" for name in shares_by_kind)
    requested = "" if len(sample.cases) == sample.asked else f" of {sample.asked} requested"
    text(f"{counted(len(sample.cases), 'case')}{requested}: {strata}")
    for pair, why in sample.left_out.items():
        text(f"{pair} cannot be shown: {why}")
    return sample


@contextlib.contextmanager
def _progress(count: int) -> Iterator[Callable[[str], str]]:
    """Yield a function that counts shown cases; takes and returns why a case cannot be shown, "" if it can."""
    from mt_nodes.cli.terminal import progress_bar

    with progress_bar("{task.completed}/{task.total} cases", label="review") as progress:
        task = progress.add_task("", total=count)

        def tried(why: str) -> str:
            progress.update(task, advance=not why)
            return why

        yield tried


def _write_page(args: argparse.Namespace, sample: Sample) -> int:
    from mt_nodes.base.directories import cannot_write, write_whole
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.review.review_page import whole_page

    try:
        write_whole(args.page, whole_page(sample, args.dir))
    except OSError as error:
        raise cannot_write(args.page, error) from error
    text(f"{args.page}: import the ratings downloaded from it with `mt review {args.dir} --import FILE`")
    return int(ExitCode.PASS)


def _serve(args: argparse.Namespace, sample: Sample, ratings: Ratings) -> int:
    from mt_nodes.runs.review.review_server import ReviewServer

    with ReviewServer(args.dir, sample, ratings, args.port) as server:
        # SIGINT may be ignored in the background of a shell; process managers send SIGTERM.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        print(f"{server.url}\nCtrl-C ends the review; then type `mt review {args.dir} --summary`", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(f"\n{len(ratings.latest)} ratings are stored in {ratings.path}", flush=True)
    return int(ExitCode.PASS)


def _import_ratings(files: list[Path], sample: Sample, ratings: Ratings) -> None:
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.review.ratings import read_download

    for path in files:
        found = read_download(path, sample.review)
        text(f"{path}: {sum([ratings.add(rating) for rating in found])} of {len(found)} ratings are new")


def _summarise(args: argparse.Namespace, sample: Sample, folder: Path) -> int:
    from mt_nodes.base.directories import write_whole
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.review.rating_summary import summarise
    from mt_nodes.runs.review.ratings import FILE, read_ratings
    from mt_nodes.runs.review.review_page import template

    found = summarise(sample, read_ratings(folder / FILE).values())
    write_whole(folder / "review.json", json.dumps(found, indent=2) + "\n")
    named = {"name": args.dir.resolve().name, "found": found, "waivers": _waivers(found)}
    write_whole(folder / "review.html", template("review.html.j2").render(**named))
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        _print(found, folder / "review.html")
        text(f"`mt report {args.dir}` links it in the run's report")
    return int(ExitCode.PASS)


def _waivers(found: dict[str, Any]) -> str:
    import yaml

    rows = found["triage"]["waivers"]
    return yaml.safe_dump(rows, sort_keys=False, allow_unicode=True) if rows else ""


def _print(found: dict[str, Any], page: Path) -> None:
    from mt_nodes.cli.terminal import table, text

    cases = sum(found["cases"].values())
    people, complete = len(found["raters"]), found["complete"]
    text(f"{found['ratings']} ratings of {cases} cases by {people} people, {complete} cases complete")
    text(f"Fleiss' kappa: realistic {_kappa(found['realistic'])}, reaction wrong {_kappa(found['wrong'])}")
    counts = found["confusion"]
    rows = [("VIOLATED", str(counts["tp"]), str(counts["fp"])), ("HOLDS", str(counts["fn"]), str(counts["tn"]))]
    table(("verdict", "rated wrong", "rated right"), rows)
    shares = ", ".join(
        f"{name.replace('_', ' ')} {_share(counts[name])}" for name in ("precision", "recall", "recall_in_run")
    )
    text(f"{shares}; no majority: {counts['undecided']}")
    checks = found["checks"]
    text(f"hidden checks rated wrong: {checks['wrong']} of {checks['wrong'] + checks['right']}")
    relations = [
        (name, str(row["cases"]), _number(row["mean"]), _percent(row["share"]))
        for name, row in found["relations"].items()
    ]
    table(("relation", "cases", "mean realism", "above neutral"), relations)
    for kind in ("false_alarms", "misses", "unrealistic"):
        for row in found["triage"][kind]:
            text(f"{kind.replace('_', ' ')}: {row['pair']}, rated wrong by {row['wrong']}, right by {row['right']}")
    if waivers := _waivers(found):
        text(f"waivers for the false alarms:\n{waivers}")
    text(str(page))


def _kappa(row: dict[str, Any]) -> str:
    if row["kappa"] is None:
        return "not defined"
    return f"{row['kappa']:.2f}" + (f" ({row['ci95'][0]:.2f} to {row['ci95'][1]:.2f})" if row["ci95"] else "")


def _share(row: dict[str, Any] | None) -> str:
    return "not measured" if row is None else f"{row['rate']:.2f} ({row['ci95'][0]:.2f} to {row['ci95'][1]:.2f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
