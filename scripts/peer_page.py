# SPDX-License-Identifier: Apache-2.0
"""Makes docs/peer_operators.md: what other tools change, and which mutations do the same here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base import plugins
from mt_nodes.base.params import build

Operator = Mapping[str, Any]
Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
FILE = Path("scripts") / "peer_operators.yaml"
_INTRO = """# Operators of other tools

This page lists every operator of tools that corrupt or test perception, and the mutations that do the same here. Use it
to repeat a benchmark, or to see what a mutation is comparable to. It is made from `scripts/peer_operators.yaml`.

Where a peer has levels of severity, a parameter has one value for each. A relation or `mt mutate --set` takes one of
them. *Measured* compares one statistic for each level, the peer's operator first: both were applied on {date} to one
cloud of a Velodyne HDL-64E of KITTI, the peer's code outside of this repository. Weather, pictures and changes of
single objects were not measured: their models differ in kind ([catalogue](catalogue.md) has the sources of each).

Most peers change data without regard to beams, time, or the other sensor, and judge by a fall of the average precision
against labels. The mutations here keep returns on their beams where a sensor would, persist from frame to frame, change
all sensors by one draw, and prove what they did on each frame; relations judge without labels."""


def peer_page(root: Path, table: Table) -> str:
    """Return the page."""
    data = yaml.safe_load((root / FILE).read_text(encoding="utf-8"))
    parts = [_INTRO.format(date=data["measured_on"])]
    for peer in data["peers"]:
        commit = f", at commit `{peer['commit']}`" if peer["commit"] else ""
        parts.append(f"## {peer['name']}\n\n{peer['paper']}, <{peer['repository']}>{commit}.")
        columns = ("operator", "sensor", "severity", "here", "remarks", "measured")
        parts.append(table(columns, [_row(operator) for operator in peer["operators"]]))
    return "\n\n".join(parts) + "\n"


def levels_of(operator: Operator, levels: int) -> list[list[Any]]:
    """Return the mutations of an operator, for each level; none if it says why there are none.

    Raises:
        UsageError: a mutation is unknown, or a parameter is.
        ValueError: a parameter has another number of values than the peer has levels.
    """
    return [
        [
            build(plugins.find("mutations", name, operator["name"]), _at(params or {}, level, levels), operator["name"])
            for step in operator.get("ours", ())
            for name, params in step.items()
        ]
        for level in range(levels)
    ]


def _at(params: Mapping[str, Any], level: int, levels: int) -> dict[str, Any]:
    """Return parameters at a level: a list has a value for each."""
    lists = {name: value for name, value in params.items() if isinstance(value, list)}
    if wrong := [name for name, value in lists.items() if len(value) != levels]:
        raise ValueError(f"{wrong[0]}: got {len(lists[wrong[0]])} values, expected {levels}")
    return {**params, **{name: value[level] for name, value in lists.items()}}


def _row(operator: Operator) -> tuple[str, ...]:
    here = "<br>".join(
        _mutation(name, params or {}) for step in operator.get("ours", ()) for name, params in step.items()
    )
    return (
        f"{operator['name']}: `{operator['function']}`",
        operator["sensor"],
        operator["severity"],
        here or "none",
        operator.get("reason") or operator.get("note") or "the same",
        _measured(operator.get("measured")),
    )


def _mutation(name: str, params: Mapping[str, Any]) -> str:
    texts = [f"`{key}: {_value(value)}`" for key, value in params.items()]
    return f"`{name}`" + (f" with {', '.join(texts)}" if texts else "")


def _value(value: Any) -> str:
    if isinstance(value, list) and isinstance(value[0], list):
        return "; ".join(f"{', '.join(map(str, each[:3]))}, … ({len(each)})" for each in value)
    return ", ".join(f"{each:g}" for each in value) if isinstance(value, list) else str(value)


def _measured(measured: Mapping[str, Any] | None) -> str:
    if measured is None:
        return "not measured"
    peer, ours = (", ".join(f"{value:g}" for value in measured[who]) for who in ("peer", "ours"))
    return f"{measured['statistic']}, {measured['unit']}: {peer}; here {ours}"
