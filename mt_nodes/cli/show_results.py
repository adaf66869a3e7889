# SPDX-License-Identifier: Apache-2.0
"""``mt show DIR``: the outcome of a finished run of any kind again, or how far one in progress is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.options import put_out
from mt_nodes.engine.results_dirs import results_of

Summary = dict[str, Any]
Show = Callable[[Path, Summary], None]
#: Results directories that are named where another one is not there, the newest ones; entries that a directory holds.
_MOST_NAMED, _ENTRIES_NAMED = 3, 6


def is_path(name: str) -> bool:
    """Return whether a name is meant as a path: by its form, or because there are results of that name."""
    return "/" in name or name.startswith(("mt_results", ".")) or _kind_of(Path(name)) is not None


def refuse_directory(directory: Path) -> None:
    """Refuse a directory without results, if it is one. Raises UsageError: saying what it is."""
    if directory.is_dir():
        raise UsageError(_no_results(directory))


def show_results(directory: Path, *, as_json: bool) -> int:
    """Print the outcome of a run, or its progress; return 0: what the run ended with is printed.

    Raises UsageError: there is no such directory, or it holds no results.
    """
    file, show = _kind(directory)
    path = directory / file
    if not path.is_file():
        if as_json:
            raise UsageError(f"mt show --json: {path} is not there yet: the run has not ended; `mt watch {directory}`")
        return _show_progress(directory)
    summary = _read(directory, path, show)
    put_out(as_json, summary, lambda: show(directory, summary))
    return 0


def _read(directory: Path, path: Path, show: Show) -> Summary:
    """Read what a run ended with; of those whose shape is known it is checked."""
    from mt_nodes.engine.finish import read_campaign_summary, read_summary

    if show is _show_moral:
        from mt_nodes.runs.moral import report_files

        return report_files.read_summary(directory)
    if show is _show_run:
        return read_summary(directory)
    return read_campaign_summary(directory) if show is _show_campaign else read_result(path)


def directory_of_pair(directory: Path, pair: str) -> Path:
    """Return the results directory that has a verdict of a pair: of a campaign one of its cells.

    Raises UsageError: none has, or several have.
    """
    _kind(directory)
    places = results_of(directory)
    found = [place for place in places if place == directory or _has_verdict(place, pair)]
    if len(found) > 1:
        commands = "; ".join(f"`mt show {place} {pair}`" for place in found)
        raise UsageError(f"mt show: {directory}: several cells have a pair '{pair}': {commands}")
    if not found:
        raise UsageError(
            f"mt show: {directory}: no cell has a verdict of pair '{pair}'; the pairs.csv of each lists them"
        )
    return found[0]


def _has_verdict(directory: Path, pair: str) -> bool:
    from mt_nodes.engine.journal import read_journal

    lines = read_journal(directory / "result.jsonl")
    return any(line["type"] == "verdict" and line["pair"] == pair for line in lines)


def _kind(directory: Path) -> tuple[str, Show]:
    """Return the file that a directory's kind of run ends with, and what prints it."""
    if not directory.is_dir():
        raise UsageError(_absent(directory))
    if kind := _kind_of(directory):
        return kind
    raise UsageError(_no_results(directory))


def _kind_of(directory: Path) -> tuple[str, Show] | None:
    from mt_nodes.runs.moral import report_journal

    if not directory.is_dir():
        return None
    if report_journal.is_campaign(directory):
        return "summary.json", _show_moral
    return next(((file, show) for mark, file, show in _KINDS if (directory / mark).exists()), None)


def _absent(directory: Path) -> str:
    """Say that a directory is not there, and which ones are beside it."""
    if directory.exists():
        return f"mt show: {directory} is a file, expected a results directory or a name from `mt list`"
    siblings = [
        p for p in directory.parent.glob("*") if p.is_dir() and not p.is_symlink() and (p / "run.json").exists()
    ]
    newest = sorted(siblings, key=lambda p: p.stat().st_mtime, reverse=True)[:_MOST_NAMED]
    hint = f"results are in {', '.join(map(str, newest))}" if newest else "`mt replay BAG` or `mt demo` makes results"
    return f"mt show: no directory {directory}; {hint}"


def _no_results(directory: Path) -> str:
    entries = sorted(path.name for path in directory.iterdir())
    if "metadata.yaml" in entries or any(name.endswith((".mcap", ".db3")) for name in entries):
        advice = f"`mt suggest {directory}` looks for relations for it, `mt replay {directory}` tests with it"
        return f"mt show: {directory} is a bag, no results of a run: {advice}"
    more = ", …" if len(entries) > _ENTRIES_NAMED else ""
    held = f"it holds {', '.join(entries[:_ENTRIES_NAMED])}{more}" if entries else "it is empty"
    inside = [str(path.parent) for path in sorted(directory.glob("*/result.jsonl"))[:_MOST_NAMED]]
    hint = f"; results are in {', '.join(inside)}" if inside else ""
    return f"mt show: {directory} has no results of a run: {held}{hint}"


def _show_progress(directory: Path) -> int:
    """Print how far a run is, and how to go on with one that was killed."""
    from mt_nodes.cli import watch_command
    from mt_nodes.cli.outcome import print_steps
    from mt_nodes.engine.next_steps import next_steps
    from mt_nodes.engine.summary.headline import Headline

    watch_command.print_progress(directory)
    print_steps(directory, next_steps(directory, Headline("INTERRUPTED", "")))
    return 0


def _show_run(directory: Path, summary: Summary) -> None:
    from mt_nodes.cli.outcome import print_summary

    print_summary(summary, directory)


def _show_campaign(directory: Path, summary: Summary) -> None:
    from mt_nodes.cli.campaign_command import print_campaign

    print_campaign(summary, directory)


def _show_moral(directory: Path, summary: Mapping[str, Any]) -> None:
    from mt_nodes.cli.moral_outcome import print_campaign

    print_campaign(directory, summary)


def _show_search(directory: Path, summary: Summary) -> None:
    from mt_nodes.cli.search_command import print_summary

    print_summary(summary, directory)


def _show_shrunk(directory: Path, result: Summary) -> None:
    from mt_nodes.cli.shrink_command import print_result

    print_result({**result, "results": str(directory)})


def _show_bisection(directory: Path, result: Summary) -> None:
    from mt_nodes.cli.bisect_command import print_result

    print_result({**result, "results": str(directory)})


def _show_automt(directory: Path, table: Summary) -> None:
    from mt_nodes.cli.automt_outcome import print_experiment

    print_experiment(directory, table, sorted(directory.glob("automt*")))


def _show_watched(directory: Path, summary: Summary) -> None:
    from mt_nodes.cli.watch_table import print_watched

    print_watched(summary, directory)


#: What a directory of each kind of run holds, the file that its end leaves, and what prints that file.
_KINDS: tuple[tuple[str, str, Show], ...] = (
    ("campaign.sqlite", "summary.json", _show_campaign),
    ("search.jsonl", "summary.json", _show_search),
    ("shrink.json", "shrunk.json", _show_shrunk),
    ("bisect.jsonl", "bisect.json", _show_bisection),
    ("proposals.json", "automt.json", _show_automt),
    ("watch.jsonl", "summary.json", _show_watched),
    ("result.jsonl", "summary.json", _show_run),
)
