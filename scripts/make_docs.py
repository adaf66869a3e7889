# SPDX-License-Identifier: Apache-2.0
"""Makes tables and pages of docs/ from the code; ``--check`` says if they are so."""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import grimp
from moral_tables import levels_table, study_table
from peer_page import peer_page
from picture_page import picture_page
from python_reference import reference as python_reference
from reliability_tables import attack_table, drive_table, soak_table
from rooms_picture import svg
from scenario_reference import reference

from mt_nodes.base.params import describe, strength_of
from mt_nodes.cli import catalogue
from mt_nodes.data import output_fields
from mt_nodes.data.intensity.intensity_conventions import CONVENTIONS
from mt_nodes.nodes import live_control
from mt_nodes.nodes.live_control import SERVICES
from mt_nodes.nodes.node_interfaces import NODES
from mt_nodes.nodes.qos import describe as describe_qos
from mt_nodes.nodes.security_policy import StackTopics, policy
from mt_nodes.relations.mutations.stream.whole_stream import SENSORS
from mt_nodes.relations.named_suites import BACKGROUND, relation_names
from mt_nodes.relations.relation import LOOP_FOLDER, RULE_BORN
from mt_nodes.runs.live.config import PARTS, LiveConfig
from mt_nodes.runs.watch.watch_request import WatchSettings
from mt_nodes.stacks.networks.cloud_decoders import CLOUD_DECODERS
from mt_nodes.stacks.networks.cloud_form import CloudForm
from mt_nodes.stacks.networks.network_stack import STEERING, CameraNetwork, LidarNetwork, SteeringForm
from mt_nodes.stacks.networks.picture_decoders import PICTURE_DECODERS
from mt_nodes.stacks.networks.picture_form import PictureForm
from mt_nodes.stacks.stack import Stack

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by scripts/make_docs.py: {} -->", "<!-- end of {} -->"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    cells = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in cells)


def nodes() -> str:
    """Return the tables of every executable: endpoints, then parameters."""
    parts = []
    for name, node in NODES.items():
        endpoints = [(e.does, f"`{e.topic}`", e.type, describe_qos(e.profile), e.about) for e in node.endpoints]
        parts += [f"**`{name}`**: {node.about}", table(("", "topic", "type", "QoS", "what"), endpoints)]
        if node.parameters is not None:
            live = getattr(node.parameters, "LIVE", frozenset())
            rows = [_parameter(p) for p in describe(node.parameters)]
            marked = [
                (*row[:3], f"{row[3]}; can be changed while it runs" if row[0][1:-1] in live else row[3])
                for row in rows
            ]
            parts.append(table(("parameter", "default", "range", "what"), marked))
    return "\n\n".join(parts)


def parameters(cls: type) -> str:
    """Return the table of a dataclass's parameters."""
    return table(("parameter", "default", "range", "what"), [_parameter(p) for p in describe(cls)])


def stack_keys() -> str:
    """Return the table of what a stack file may hold."""
    return parameters(Stack)


def intensity_conventions() -> str:
    """Return the table of intensity conventions."""
    rows = [
        (
            f"`{row.name}`",
            row.sensors,
            "from the data" if math.isnan(row.white) else f"{row.white:.4g}",
            "no limit" if math.isinf(row.top) else f"{row.top:.6g}",
            "logarithmic" if row.logarithmic else "linear" if row.top > row.white else "",
            "yes" if row.compensated else "no",
            row.source,
        )
        for row in CONVENTIONS.values()
    ]
    columns = ("name", "sensors", "white", "largest value", "above white", "range compensated", "source")
    return table(columns, rows)


def suites() -> str:
    """Return how many relations there are, and the table of the named suites."""
    names = catalogue.names("relations")
    of_rules = sum(name.startswith(RULE_BORN) for name in names)
    background = sum(name in BACKGROUND for name in names)
    drives = len(relation_names(LOOP_FOLDER))
    frames = len(names) - of_rules - background - drives
    count = (
        f"{frames + drives} relations ship, {drives} of them for whole drives in a closed loop, and {of_rules} more "
        "from traffic rules. The suites overlap:"
    )
    rows = [(f"`{row['name']}`", row["count"], row["summary"]) for row in catalogue.rows("suites")]
    return f"{count}\n\n{table(('suite', 'relations', 'what it is'), rows)}"


def network_outputs() -> str:
    """Return the table of what a network may say, with what is usual for its input."""
    rows = [
        (
            f"`{name}`",
            f"picture, {', '.join(f'{k} {_plain(v)}' for k, v in usual.items()) or 'as below'}",
            _first(decode),
        )
        for name, (decode, usual) in PICTURE_DECODERS.items()
    ]
    rows += [(f"`{name}`", "cloud", _first(decode)) for name, decode in CLOUD_DECODERS.items()]
    return table(
        ("`output`", "takes", "the network says"), [*rows, (f"`{STEERING}`", "picture", "any numbers: see below")]
    )


def network_keys() -> str:
    """Return the table of what ``network`` holds beside its forms."""
    camera, lidar = ({p["name"]: _parameter(p) for p in describe(cls)} for cls in (CameraNetwork, LidarNetwork))
    rows = []
    for name in ("labels", "score", "overlap", "anchors"):
        key, default, bounds, what = camera.get(name, lidar[name])
        of_clouds = lidar[name][1]
        rows.append((key, default if of_clouds == default else f"{default}, of clouds {of_clouds}", bounds, what))
    return table(("key", "default", "range", "what"), rows)


def _first(decode: Callable[..., Any]) -> str:
    return str(decode.__doc__).splitlines()[0].rstrip(".")


def _plain(value: Any) -> str:
    return ", ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else str(value)


def faults() -> str:
    """Return the planted faults with what they do."""
    return table(
        ("fault", "how it loses an obstacle"), [(f"`{r['name']}`", r["summary"]) for r in catalogue.rows("faults")]
    )


def everything() -> str:
    """Return docs/catalogue.md."""
    parts = [
        "# Catalogue",
        "This page lists every plugin with its parameters, for authors of relations and stack files. `mt list` and "
        "`mt show` print the same. `scripts/make_docs.py` makes the page from the code.",
    ]
    for kind in catalogue.kinds():
        parts.append(f"## {kind.capitalize()}")
        if kind == "adapters":
            parts += [adapters(), any_type()]
        if kind == "mutations":
            parts.append(
                "*Strength* gives the value of a parameter at which the change is weakest; `mt search` and `mt shrink` "
                "use it. A *place* determines where or when, not how much. *Fixed* is an assumption, a limit or a seed."
            )
        for row in catalogue.rows(kind):
            parts += [f"### `{row['name']}`", " ".join(str(row.get("doc") or row["summary"]).split())]
            if row.get("parameters") and kind == "mutations":
                told = [(*cells, strength_of(p), about) for p in row["parameters"] for *cells, about in [_parameter(p)]]
                parts.append(table(("parameter", "default", "range", "strength", "what"), told))
            elif row.get("parameters"):
                columns = ("parameter", "default", "range", "what")
                parts.append(table(columns, [_parameter(p) for p in row["parameters"]]))
    return "\n\n".join(parts) + "\n"


def adapters() -> str:
    """Return the table of the message types that are read."""
    columns = ("type", "role", "name", "confidence", "use", "package")
    rows = sorted(catalogue.rows("adapters"), key=lambda row: (row["role"], row["type"]))
    return table(columns, [[f"`{row[c]}`" if c in ("type", "name") else row[c] for c in columns] for row in rows])


def any_type() -> str:
    """Return what ``fields:`` of an output takes, by role."""
    _, example, about = (inspect.getdoc(output_fields) or "").split("\n\n", 2)
    rows = [(role, f"`{key}`", kind.value) for role, keys in output_fields.KEYS.items() for key, kind in keys.items()]
    parts = [
        "A message of any other type is read by paths, `fields:` of an output:",
        f"```yaml\n{inspect.cleandoc(example)}\n```",
        about.replace("\n\n", " ").replace("\n", " "),
        table(("role", "field", "what it must lead to"), rows),
    ]
    return "\n\n".join(parts)


def gallery() -> str:
    """Return docs/gallery.md: what each mutation does, with its picture by ``scripts/make_gallery.py``."""
    rows, parts = catalogue.rows("mutations"), ["# Gallery"]
    parts.append(
        "This page shows what every mutation does, with its defaults, to one frame of the generated drive: before on "
        "the left, after on the right. Use it to choose mutations. `mt show NAME --bag BAG --frame K --out FILE` draws "
        "the same for your own data and also for the mutations of a relation (`--set` for other parameters, "
        "`--range-m` for a smaller or larger view). `make gallery` makes this page and its pictures."
    )
    for group in sorted({_group(row) for row in rows}):
        parts.append(f"## {group.capitalize()}")
        for row in (row for row in rows if _group(row) == group):
            name = row["name"]
            parts += [f"### `{name}`", row["summary"]]
            parts.append(_picture(name, row))
            parts.append(f"Guarantee, checked on every frame: {row['guarantee']}")
    return "\n\n".join(parts) + "\n"


def _picture(name: str, row: dict[str, Any]) -> str:
    """Return the picture of a mutation, or why there is none."""
    if row.get("extra"):
        return f"Needs the extra `{row['extra']}`, and a model: no picture."
    if not {*SENSORS} & {*row["sensors"]}:
        return f"Changes messages of a {row['sensors'][0]}: no picture."
    return f"![{name}, before and after](gallery/{name}.png)"


def _group(row: dict[str, Any]) -> str:
    return str(row["module"]).split(".")[-2]


def watch_keys() -> str:
    """Return the table of the part ``watch`` of a configuration."""
    return table(("key", "default", "range", "what"), [_parameter(p) for p in describe(WatchSettings)])


def live_keys() -> str:
    """Return the tables of what a configuration of ``mt live`` may hold."""
    whole = [p for p in describe(LiveConfig) if p["name"] not in PARTS]
    inner = {part: getattr(LiveConfig(), part) for part in PARTS}
    parts = [
        dict(p, name=f"{part}.{p['name']}", default=_default(inner[part], p))
        for part in PARTS
        for p in describe(type(inner[part]))
    ]
    return table(("key", "default", "range", "what"), [_parameter(p) for p in (*whole, *parts)])


def _default(part: Any, p: Mapping[str, Any]) -> Any:
    """Return a parameter's default in a part of the configuration, which may differ from that of the class."""
    value = getattr(part, p["name"])
    return list(value) if isinstance(value, tuple) else value


def live_services() -> str:
    """Return the table of the services of a run beside a live stack."""
    rows = [(f"`/{live_control.NAME}/{name}`", "std_srvs/srv/Trigger", what) for name, what in SERVICES.items()]
    return table(("service", "type", "what"), rows)


def rooms() -> str:
    """Return the table of the rooms and what each holds, below their picture."""
    arrows = _arrows()
    names = sorted(arrows, key=lambda room: (len(_below(room, arrows)), room), reverse=True)
    rows = [(f"`{room}/`", *_said_of(room)) for room in names]
    picture = "![The rooms of the package; an arrow leads to a room that is imported](rooms.svg)"
    return f"{picture}\n\n{table(('room', 'holds', 'imports', 'where a new thing goes'), rows)}"


def rooms_svg() -> str:
    """Return docs/rooms.svg: the rooms and the imports between them."""
    arrows = _arrows()
    return svg({a: {b for b in below if not _by_another(a, b, arrows)} for a, below in arrows.items()})


@cache
def _arrows() -> dict[str, set[str]]:
    """Return the rooms that each room imports from."""
    graph = grimp.build_graph("mt_nodes", cache_dir=None)
    found: dict[str, set[str]] = {name.split(".")[1]: set() for name in graph.find_children("mt_nodes")}
    for module in graph.modules - {"mt_nodes"}:
        room = module.split(".")[1]
        others = graph.find_modules_directly_imported_by(module) - {"mt_nodes"}
        found[room] |= {name.split(".")[1] for name in others} - {room}
    return found


def _below(room: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """Return every room that one imports from, by way of others, too."""
    return {below for other in arrows[room] for below in (other, *_below(other, arrows))}


def _by_another(room: str, other: str, arrows: Mapping[str, set[str]]) -> bool:
    """Whether a room also reaches another by way of a third: such an arrow is not drawn."""
    return any(other in _below(third, arrows) for third in arrows[room] - {other})


def _said_of(room: str) -> tuple[str, str, str]:
    """Return what the docstring of a room says: what it holds, what it imports, where a new thing goes."""
    text = inspect.getdoc(importlib.import_module(f"mt_nodes.{room}")) or ""
    plain = re.sub(r":\w+:`~?mt_nodes\.([\w.]+)`", r"`\1`", text.replace("``", "`"))
    holds, _, imports, goes = plain.splitlines()
    return holds, imports, goes


def filled(text: str, page: str) -> str:
    """Return a page with every generated part made anew."""
    for name, make in FILLED[page].items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{page} lacks '{begin}' … '{end}'")
        text = f"{before}{begin}\n\n{make()}\n\n{end}{after}"
    return text


FILLED = {
    "docs/architecture.md": {"rooms": rooms},
    "docs/faults.md": {"faults": faults},
    "docs/networks.md": {
        "network outputs": network_outputs,
        "network keys": network_keys,
        "picture form": lambda: parameters(PictureForm),
        "cloud form": lambda: parameters(CloudForm),
        "steering form": lambda: parameters(SteeringForm),
    },
    "docs/nodes.md": {"nodes": nodes},
    "docs/python.md": {"python reference": python_reference},
    "docs/relations.md": {"suites": suites},
    "docs/intensities.md": {"intensity conventions": intensity_conventions},
    "docs/stacks.md": {"stack keys": stack_keys},
    "docs/live.md": {"live keys": live_keys, "live services": live_services},
    "docs/watching.md": {"watch keys": watch_keys},
    "docs/moral_testing.md": {"moral study": study_table, "moral levels": levels_table},
    "docs/reliability.md": {
        "attacks": lambda: attack_table(table),
        "soak": lambda: soak_table(table),
        "drive memory": lambda: drive_table(table),
    },
}


def main() -> int:
    """Write, or with ``--check`` compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is not up to date")
    check = parser.parse_args().check
    docs = ROOT / "docs"
    wanted = {ROOT / page: filled((ROOT / page).read_text(encoding="utf-8"), page) for page in FILLED}
    wanted |= {docs / "catalogue.md": everything(), docs / "gallery.md": gallery(), docs / "rooms.svg": rooms_svg()}
    wanted[docs / "peer_operators.md"] = peer_page(ROOT, table)
    wanted[docs / "pictures.md"] = picture_page(ROOT, table)
    scenarios = ROOT / "config" / "scenarios"
    wanted[ROOT / "config" / "sros2" / "policy.xml"] = policy(StackTopics())
    wanted[docs / "scenario_language.md"] = reference(table, scenarios, "child_between_parked_cars")
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    if not check:
        for path in stale:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        return 0
    for path in stale:
        sys.stderr.write(f"{path.name} is not what the code says; type: make docs\n")
    return 1 if stale else 0


def _parameter(p: dict[str, object]) -> tuple[str, str, str, str]:
    low, high, unit = p["low"], p["high"], f" {p['unit']}" if p["unit"] else ""
    bounds = "" if low is None and high is None else f"{_number(low)} … {_number(high)}{unit}"
    choices = ", ".join(c or '""' for c in p["choices"])  # type: ignore[attr-defined]
    default = "" if p["default"] in (None, "") else f"`{p['default']}`"
    return f"`{p['name']}`", default, choices or bounds, str(p["help"])


def _number(value: object) -> str:
    return "" if value is None else f"{value:,g}"


if __name__ == "__main__":
    sys.exit(main())
