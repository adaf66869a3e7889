# SPDX-License-Identifier: Apache-2.0
"""``mt experiment routes MAP``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.options import add_results, at_least_one, comma_separated

if TYPE_CHECKING:
    from mt_nodes.data.hd_maps.hd_map import HdMap

PLANNER, PAIRS = "reference_route_planner", 100


def add_routes_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt experiment routes my_town.xodr --planner my_planner:plan --pairs 200"
    add = parser.add_argument
    about = "Lanelet2 (.osm) or OpenDRIVE (.xodr) file of the planner's map (default: a map made for this)"
    add("map", metavar="MAP", nargs="?", default="", help=about)
    about = "MODULE:FUNCTION, called with a RouteQuery, or ros:/SERVICE of nav_msgs/GetPlan (default %(default)s)"
    add("--planner", default=PLANNER, metavar="NAME", help=about)
    add("--fault", default="", metavar="NAME", help="plant a fault in the reference planner")
    add("--relations", type=comma_separated, default=(), metavar="NAME,…", help="only these (default: all that fit)")
    add("--pairs", type=at_least_one, default=PAIRS, metavar="N", help="pairs for each relation (default %(default)s)")
    origin = "latitude,longitude of the map's frame, for a Lanelet2 map in degrees"
    add("--origin", type=_origin, metavar="LAT,LON", help=origin)
    add("--seed", type=int, default=0, help="seed of all random draws (default %(default)s)")
    add_results(parser, prints="routes.json", table="a table")


def run_routes(args: argparse.Namespace) -> int:
    """Ask for routes, print a table of the relations, return the exit code."""
    from mt_nodes.base.directories import new_directory
    from mt_nodes.data.hd_maps.lane_graph import LaneGraph
    from mt_nodes.runs.routes.route_files import write_routes
    from mt_nodes.runs.routes.route_planner import opened_planner
    from mt_nodes.runs.routes.route_relations import chosen_relations
    from mt_nodes.runs.routes.route_run import summarise

    hd_map, about = _map(args)
    graph = LaneGraph.of(hd_map)
    with opened_planner(args.planner, graph, args.fault) as planner:
        relations, left_out = chosen_relations(args.relations, closes=getattr(planner, "closes_roads", True))
        out = new_directory(args.out)
        pairs, interrupted = _judged(args, planner, graph, relations)
    table = {
        "schema": 1,
        "experiment": "routes",
        "map": {**about, "lanes": len(hd_map.lanes)},
        "planner": args.planner,
        "fault": args.fault,
        "seed": args.seed,
        "left_out": left_out,
        **summarise(relations, pairs, interrupted=interrupted),
    }
    files = write_routes(out, table, hd_map, pairs)
    if args.json:
        print(json.dumps(table, indent=1))
    else:
        _print(table, files, out)
    return int(table["exit_code"])


def _map(args: argparse.Namespace) -> tuple[HdMap, dict[str, str]]:
    """Return the map, and what the record says of it."""
    from mt_nodes.data.hd_maps.road_area import RoadArea
    from mt_nodes.runs.routes.route_files import NAME, borough

    if not args.map:
        return borough(), {"path": NAME}
    area = RoadArea.of_file(Path(args.map).absolute(), args.origin)
    return area.hd_map(), {"path": area.map, "sha256": area.sha256}


def _judged(args: argparse.Namespace, planner: Any, graph: Any, relations: Any) -> tuple[list[Any], bool]:
    """Return the pairs as far as they were judged, and whether the user interrupted."""
    from mt_nodes.cli.terminal import progress_bar
    from mt_nodes.runs.routes.route_run import execute

    pairs: list[Any] = []
    with progress_bar("{task.completed:.0f}/{task.total}", hidden=args.json) as progress:
        task = progress.add_task("routes", total=args.pairs * len(relations))
        try:
            for pair in execute(planner, graph, relations, args.pairs, args.seed):
                pairs.append(pair)
                progress.advance(task)
        except KeyboardInterrupt:
            return pairs, True
    return pairs, False


def _print(table: Mapping[str, Any], files: list[Path], out: Path) -> None:
    from mt_nodes.cli import terminal

    columns = ("relation", "outcome", "violated", "differs when asked again")
    rows = [
        (name, row["outcome"], f"{row['violated']}/{row['decided']}", str(row["control_differs"]))
        for name, row in table["relations"].items()
    ]
    terminal.table(columns, rows, right=columns[2:])
    for name, row in table["relations"].items():
        if row["outcome"] != "PASS":
            terminal.text(f"{name}: {row['outcome']}: {row['why']}{row['worst'] and '; at worst: ' + row['worst']}")
    for name, why in table["left_out"].items():
        terminal.text(f"{name}: not asked: {why}")
    terminal.text(f"exit code {table['exit_code']}: {table['exit_why']}")
    terminal.text(f"results in {out}: {', '.join(path.name for path in files)}")


def _origin(text: str) -> tuple[float, float]:
    try:
        latitude, longitude = (float(word) for word in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got '{text}', expected LATITUDE,LONGITUDE in degrees") from error
    return latitude, longitude
