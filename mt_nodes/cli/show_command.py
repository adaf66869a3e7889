# SPDX-License-Identifier: Apache-2.0
"""``mt show NAME``; with a bag: a frame before and after a mutation; ``mt show DIR PAIR``: the verdict of a pair."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import strength_of
from mt_nodes.cli import catalogue
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import help_of, settings, whole_number
from mt_nodes.cli.show_results import directory_of_pair, is_path, refuse_directory, show_results
from mt_nodes.cli.terminal import heading, paged_text, table, text
from mt_nodes.engine.plan import ReplayRequest

#: Options that need --bag, with their defaults.
_WITH_BAG: dict[str, Any] = {"frame": None, "out": None, "set": [], "seed": None, "topic": [], "transforms": None}
_WITH_BAG |= {"range_m": None}

EXAMPLES = (
    "example: mt show mt_results/latest                        the outcome of a run, and what to type next",
    "         mt show mt_results/latest 0/3/fog_monotone/0     a pair of it",
    "         mt show fog_monotone                             a relation, or anything else that `mt list` lists",
    "         mt show noise_outside_roi --bag my_bag --frame 10 --set points=100 --out noise.png",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(EXAMPLES)
    about = "a name from `mt list`, or a results directory: the outcome of its run"
    parser.add_argument("name", metavar="NAME|DIR", help=about)
    parser.add_argument(
        "pair",
        metavar="PAIR",
        nargs="?",
        help="with DIR: a pair as in report and pairs.csv, or a case of `mt experiment moral`: its verdict",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add = parser.add_argument_group("with a bag: a picture of a frame before and after a mutation").add_argument
    add(
        "--bag",
        type=Path,
        metavar="BAG",
        help="draw a frame before and after the mutation, or the mutations of a relation",
    )
    add("--frame", type=whole_number, metavar="K", help="number of the frame, from 0 (default 0)")
    add("--out", type=Path, metavar="FILE", help="picture to write: png, svg, pdf (default NAME_frame_K.png)")
    add("--set", action="append", default=[], metavar="K=V", help="set a parameter of the mutation")
    add("--seed", type=int, help="seed of all random draws (default 0)")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--transforms", type=Path, metavar="FILE", help="YAML file with transforms that the bag lacks")
    add(
        "--range-m", type=float, metavar="M", help="radius around the ego vehicle to draw (default: that of the change)"
    )


def run(args: argparse.Namespace) -> int:
    """Print what is known of a name or a pair, or draw what a mutation does."""
    given = [name for name, default in _WITH_BAG.items() if getattr(args, name) != default]
    if given and args.bag is None:
        raise UsageError(f"mt show: --{given[0].replace('_', '-')} needs a bag; give --bag, too")
    if args.pair:
        return _show_pair(args)
    if args.bag is None and is_path(args.name):
        return show_results(Path(args.name), as_json=args.json)
    kind, row = _found(args.name)
    if args.bag is not None:
        return _draw(args, kind)
    if args.json:
        print(json.dumps({"kind_of_thing": kind, **row}, indent=2))
        return 0
    title = f"{row['name']} ({kind.rstrip('s')})"
    if "parameters" not in row:
        paged_text(f"{title}\n{yaml.safe_dump(row, sort_keys=False, allow_unicode=True).rstrip()}")
        return 0
    heading(title)
    text(row["doc"])
    parameters = row["parameters"]
    if kind == "mutations" and parameters:
        rows = [(*cells, strength_of(p), about) for p in parameters for *cells, about in [_parameter(p)]]
        table(("parameter", "default", "range", "strength", "what it is"), rows)
    elif parameters:
        table(("parameter", "default", "range", "what it is"), [_parameter(p) for p in parameters])
    return 0


def _found(name: str) -> tuple[str, dict[str, Any]]:
    """Return the kind and the row of a name. Raises UsageError: nothing has that name."""
    try:
        return catalogue.find(name)
    except UsageError:
        refuse_directory(Path(name))
        raise


def _show_pair(args: argparse.Namespace) -> int:
    """Print the verdict of a pair, and what was changed, or both drives, in words."""
    from mt_nodes.data.verdict import Pair
    from mt_nodes.engine.recorded_drives import episode_line, load_recorded_drives
    from mt_nodes.engine.recorded_pair import command
    from mt_nodes.engine.run_record import read_record
    from mt_nodes.report.episode_words import in_words
    from mt_nodes.runs.again.changed_since import reproduction_verdict
    from mt_nodes.runs.moral.report_journal import is_campaign

    if args.bag is not None:
        raise UsageError("mt show: got --bag and PAIR, expected one of them")
    directory = Path(args.name)
    if is_campaign(directory):
        from mt_nodes.cli import moral_results

        return moral_results.show(directory, args.pair, as_json=args.json)
    pair = Pair.parse(args.pair)
    directory = directory_of_pair(directory, args.pair)
    if "scenarios" not in read_record(directory)["request"]:
        from mt_nodes.cli.frame_pair import show_frame_pair

        show_frame_pair(directory, pair, as_json=args.json)
        return 0
    verdict = reproduction_verdict(directory, pair)
    if verdict is None:
        raise UsageError(f"{directory}: no verdict of pair '{pair}'; pairs.csv lists them")
    words = in_words(load_recorded_drives(directory, episode_line(directory, pair)))
    rerun = command(directory, pair)
    if args.json:
        print(json.dumps({"verdict": verdict.as_plain(), "drives": words, "command": rerun}, indent=2))
        return 0
    judgement = verdict.judgement
    heading(f"pair {pair}: {judgement.outcome.value}")
    if judgement.measured is not None:
        bound = "none" if judgement.bound is None else f"{judgement.bound:g}"
        text(f"measured {judgement.measured:g} {judgement.unit}, bound {bound}")
    text("\n".join(filter(None, (judgement.reason, *words, rerun))))
    return 0


def _parameter(p: dict[str, Any]) -> tuple[str, str, str, str]:
    unit = f" {p['unit']}" if p["unit"] else ""
    bounds = [p["low"], p["high"]]
    limits = "" if bounds == [None, None] else " … ".join("" if b is None else f"{b:g}" for b in bounds) + unit
    default = "" if p["default"] is None else str(p["default"])
    return p["name"], default, ", ".join(p["choices"]) or limits, p["help"]


def _draw(args: argparse.Namespace, kind: str) -> int:
    from mt_nodes.data.transforms import load_transforms
    from mt_nodes.report.mutation_picture import title, write_picture
    from mt_nodes.report.pictures.frame_inspection import inspect_bag

    if args.range_m is not None and not 1.0 <= args.range_m <= 1000.0:
        raise UsageError(f"--range-m: got {args.range_m:g} m, expected 1 to 1000 m")
    mutations, baseline, relation = _mutations(args, kind)
    frame, tree = args.frame or 0, load_transforms(args.transforms) if args.transforms else None
    frame_of = {"name": args.name, "relation": relation, "frame": frame, "seed": args.seed or 0, "baseline": baseline}
    frame_pair = inspect_bag(args.bag, role_topics(args.topic), tree, mutations, **frame_of)
    out = args.out or Path(f"{args.name}_frame_{frame}.png")
    write_picture(frame_pair, out, args.range_m)
    if args.json:
        print(json.dumps({"name": args.name, "picture": str(out), **frame_pair.counts()}, indent=2))
    else:
        text(f"{title(frame_pair)}\npicture: {out}")
    return 0


def _mutations(args: argparse.Namespace, kind: str) -> tuple[list[Any], list[Any], str]:
    """Return the mutations, those of the baseline, and the relation that seeds their draws, as in a run."""
    from mt_nodes.base import plugins
    from mt_nodes.base.params import build
    from mt_nodes.engine.bag_mutation import RELATION
    from mt_nodes.relations.relation import load_relation

    if kind == "mutations":
        return [build(plugins.find(kind, args.name, "mt show"), settings(args.set), "--set")], [], RELATION
    if kind not in ("manipulations", "relations"):
        expected = "a mutation, a manipulation or a relation"
        raise UsageError(f"mt show --bag: {args.name} is one of the {kind}, expected {expected}")
    if args.set:
        what = kind.rstrip("s")
        raise UsageError(f"--set: {args.name} is a {what}, which has fixed parameters; name a mutation instead")
    if kind == "manipulations":
        from mt_nodes.relations.manipulations import find

        return list(find(args.name).mutations()), [], args.name
    relation = load_relation(args.name)
    return list(relation.mutate), list(relation.baseline), args.name
