# SPDX-License-Identifier: Apache-2.0
"""``mt compare DIR DIR…``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.options import put_out

if TYPE_CHECKING:
    from mt_nodes.engine.waivers import Waiver

COLUMNS = ("relation", "change", "before", "after", "violated before", "after", "p", "test")
#: Printed pairs of each kind; --json has all.
MAX_PAIRS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt compare results_of_main results_of_my_branch --waivers waivers.yaml"
    add = parser.add_argument
    about = "two results directories, before and after, or three and more for a trend, oldest first"
    add("dirs", type=Path, metavar="DIR", nargs="+", help=about)
    add("--waivers", type=Path, metavar="FILE", help="YAML file with known violations that are accepted for now")
    add("--json", action="store_true", help="print JSON")
    about = "name of a directory in a trend (default its path)"
    add("--label", action="append", default=[], metavar="NAME=DIR", help=about)
    about = "order of a trend: given (as typed) or date (when the runs began) (default %(default)s)"
    add("--by", default="given", choices=("given", "date"), metavar="ORDER", help=about)
    add("--html", type=Path, metavar="FILE", help="also write the trend as a page with plots")


def run(args: argparse.Namespace) -> int:
    """Print what is newly, no longer and still failing, or the trend; ``exit_of`` gives the exit code."""
    from mt_nodes.engine.results_dirs import cells_of
    from mt_nodes.engine.waivers import load_waivers
    from mt_nodes.runs.moral.report_journal import is_campaign

    if len(args.dirs) < 2:
        raise UsageError(f"got only {args.dirs[0]}, expected two results directories or more")
    if len(args.dirs) == 2 and all(map(is_campaign, args.dirs)):
        from mt_nodes.cli import moral_results

        return moral_results.compare(*args.dirs, as_json=args.json)
    waivers = load_waivers(args.waivers) if args.waivers else None
    for_trend = args.label or args.html or args.by != "given"
    if len(args.dirs) > 2 or for_trend or any(map(cells_of, args.dirs)):
        return _trend(args, waivers)
    return _compare_two(args, waivers)


def _compare_two(args: argparse.Namespace, waivers: Sequence[Waiver] | None) -> int:
    from mt_nodes.report.comparison import ComparedRun, compare

    before, after = args.dirs
    found = compare(ComparedRun.load(before), ComparedRun.load(after, waivers))
    put_out(args.json, found, lambda: _print(found))
    return int(found["exit_code"])


def _trend(args: argparse.Namespace, waivers: Sequence[Waiver] | None) -> int:
    from mt_nodes.report.trend.versions import Version, by_date, trend

    _refuse_same(args.dirs)
    labels = _labels(args.label, args.dirs)
    versions = [Version.load(path, labels.get(path, ""), waivers) for path in args.dirs]
    found = trend(by_date(versions) if args.by == "date" else versions)
    if args.html:
        from mt_nodes.report.trend.page import write_page

        write_page(args.html, found)
    put_out(args.json, found, lambda: _print_trend(found, args.html))
    return int(found["exit_code"])


def _refuse_same(dirs: Sequence[Path]) -> None:
    """Refuse a directory that is named twice. Raises UsageError: naming it."""
    paths = [path.resolve() for path in dirs]
    for at, path in enumerate(paths):
        if path in paths[:at]:
            first = dirs[paths.index(path)]
            alias = "" if first == dirs[at] else f" ({first} is the same)"
            raise UsageError(f"got {dirs[at]} twice{alias}, expected another directory for each version")


def _labels(given: Sequence[str], dirs: Sequence[Path]) -> dict[Path, str]:
    """Return the names of directories."""
    labels: dict[Path, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and Path(path) in dirs):
            known = ", ".join(map(str, dirs))
            raise UsageError(f"--label: got '{text}', expected NAME=DIR with one of these directories: {known}")
        labels[Path(path)] = name
    names = [labels.get(path, str(path)) for path in dirs]
    if alike := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two versions are called '{alike}'; give each a name of its own with --label")
    return labels


def _print_trend(found: dict[str, Any], page: Path | None) -> None:
    from mt_nodes.cli.terminal import table, text
    from mt_nodes.report.beside import TREND

    labels = [version["label"] for version in found["versions"]]
    rows = [
        (row["name"], *map(_point, row["points"]), row["change"] or "not in the last run", _p(row))
        for row in found["relations"]
    ]
    table(("relation", *labels, "last change", "p"), rows, right=("p",))
    for row in found["relations"]:
        for change in row["changes"]:
            rates = " and ".join(f"{100 * change[side]:.1f} %" for side in ("rate_before", "rate_after"))
            text(f"{row['name']}: changed at {change['version']}, {rates} before and after, p = {_p(change)}")
        if row["failing_since"]:
            text(f"{row['name']}: failing since {row['failing_since']}")
    for note in found["notes"]:
        text(note)
    if page:
        text(f"{page}; saved as {TREND} in a results directory, `mt report DIR` links it")
    text(f"exit code {found['exit_code']}: {found['exit_why']}")


def _point(point: dict[str, Any] | None) -> str:
    if point is None:
        return "-"
    return f"{point['violated']}/{point['decided']} {point['outcome']}" + (" (waived)" if point["waived"] else "")


def _print(found: dict[str, Any]) -> None:
    from mt_nodes.cli.outcome import requirements
    from mt_nodes.cli.terminal import table, text

    table(COLUMNS, [_row(name, relation) for name, relation in found["relations"].items()], right=("p",))
    for line in requirements(found["relations"]):
        text(line)
    for name, relation in found["relations"].items():
        if relation["waived"]:
            text(f"{name}: FAIL waived until {relation['waived']['expires']}: {relation['waived']['reason']}")
        for kind in ("newly_failing", "newly_passing", "still_failing"):
            _print_pairs(name, kind.replace("_", " "), (relation["pairs"] or {}).get(kind, []))
    for where, names in (("before", found["only_before"]), ("after", found["only_after"])):
        if names:
            text(f"only in the run {where}: {', '.join(names)}")
    for note in found["notes"]:
        text(note)
    text(f"exit code {found['exit_code']}: {found['exit_why']}")


def _print_pairs(name: str, kind: str, pairs: list[str]) -> None:
    from mt_nodes.cli.terminal import text

    if pairs:
        more = f" and {len(pairs) - MAX_PAIRS} more" if len(pairs) > MAX_PAIRS else ""
        text(f"{name}, {len(pairs)} {kind}: {', '.join(pairs[:MAX_PAIRS])}{more}")


def _row(name: str, relation: dict[str, Any]) -> tuple[str, ...]:
    was, now = relation["before"], relation["after"]
    return (
        name,
        relation["change"] + (" (waived)" if relation["waived"] else ""),
        was["outcome"],
        now["outcome"],
        f"{was['violated']}/{was['decided']}",
        f"{now['violated']}/{now['decided']}",
        _p(relation),
        relation["test"],
    )


def _p(relation: dict[str, Any]) -> str:
    return "-" if relation["p_adjusted"] is None else f"{relation['p_adjusted']:.2g}"
