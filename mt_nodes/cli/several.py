# SPDX-License-Identifier: Apache-2.0
"""Commands that have several command lines, each with a name: ``mt experiment NAME``, ``mt rules VERB``."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping

#: name -> module in mt_nodes.cli that has ``add_arguments(parser)`` and ``run(args) -> int``, and what it does
Lines = Mapping[str, tuple[str, str]]


def add_lines(parser: argparse.ArgumentParser, lines: Lines, metavar: str) -> None:
    """Declare all command lines, with the example and the usage of each in the help of the command."""
    from mt_nodes.cli.main import add_common

    names = parser.add_subparsers(dest="name", required=True, metavar=metavar)
    examples, usages = [], []
    for name, (module, about) in lines.items():
        sub = names.add_parser(name, help=about, description=f"{about}.")
        add_common(sub)
        importlib.import_module(f"mt_nodes.cli.{module}").add_arguments(sub)
        examples.append(str(sub.epilog))
        usages.append(sub.format_usage())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join((*examples, "", *usages))


def run_line(args: argparse.Namespace, lines: Lines) -> int:
    """Carry out the one that was named and return its exit code."""
    return int(importlib.import_module(f"mt_nodes.cli.{lines[args.name][0]}").run(args))
