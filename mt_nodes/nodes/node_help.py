# SPDX-License-Identifier: Apache-2.0
"""What a node answers to ``--help``: its parameters, topics and an example, from the same rows as docs/nodes.md."""

from __future__ import annotations

import argparse
import importlib
import sys
import textwrap
from collections.abc import Iterator, Sequence

from mt_nodes.base.params import describe

_COLUMNS = 100
_WORDS = frozenset({"-h", "--help"})


def wants_help(args: Sequence[str] | None) -> bool:
    """Return whether ``--help`` is among the words of a command line that are not for ROS."""
    words = sys.argv[1:] if args is None else list(args)
    own = words[: words.index("--ros-args")] if "--ros-args" in words else words
    return bool(_WORDS & set(own))


def node_help(name: str) -> str:
    """Return the help of a node without options of its own."""
    about, *rest = _sections(name)
    usage = f"usage: ros2 run mt_nodes {name} --ros-args -p PARAMETER:=VALUE … (or python -m mt_nodes.nodes.{name} …)"
    return "\n\n".join((about, usage, *rest)) + "\n"


def node_parser(name: str, args: Sequence[str] | None) -> argparse.ArgumentParser:
    """Return the parser of a node with options; where help is wanted, with the node's topics and an example."""
    about, *rest = _sections(name) if wants_help(args) else ("",)
    as_written = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(name, description=about, epilog="\n\n".join(rest), formatter_class=as_written)


def _sections(name: str) -> Iterator[str]:
    from mt_nodes.nodes.qos import describe as describe_qos

    # By its name: the table imports every node, and every node imports this module.
    node = importlib.import_module("mt_nodes.nodes.node_interfaces").NODES[name]
    yield textwrap.fill(f"{name}: {node.about}", _COLUMNS)
    if node.parameters is not None:
        yield "\n".join(("parameters:", *map(_parameter, _rows_of(node.parameters))))
    topics = (_item(f"{e.does} {e.topic}", f"{e.type}; {describe_qos(e.profile)}; {e.about}") for e in node.endpoints)
    yield "\n".join(("topics:", *topics))
    yield f"example:\n  {node.example}"


def _rows_of(parameters: type) -> Iterator[dict[str, object]]:
    live: frozenset[str] = getattr(parameters, "LIVE", frozenset())
    yield from ({**row, "live": row["name"] in live} for row in describe(parameters))


def _parameter(row: dict[str, object]) -> str:
    default = "" if row["default"] in ("", None) else f" (default {row['default']})"
    choices = f"; one of {', '.join(map(str, row['choices']))}" if row["choices"] else ""  # type: ignore[call-overload]
    unit = f" [{row['unit']}]" if row["unit"] else ""
    live = "; ros2 param set changes it while the node runs" if row["live"] else ""
    return _item(str(row["name"]), f"{row['help']}{unit}{choices}{default}{live}")


def _item(head: str, text: str) -> str:
    return f"  {head}\n{textwrap.fill(text, _COLUMNS, initial_indent='      ', subsequent_indent='      ')}"
