# SPDX-License-Identifier: Apache-2.0
"""``mt experiment NAME``: published experiments, each with a command line of its own."""

from __future__ import annotations

import argparse
import importlib

#: name -> module in mt_nodes.cli that has ``add_arguments(parser)`` and ``run(args) -> int``, and what it repeats
NAMES = {
    "noise-outside-roi": ("noise_outside_roi", "Zhou & Sun, CACM 2019: noise that no obstacle may vanish by"),
    "moral": ("moral", "Tang et al., 2025: whom a stack hits where it cannot but hit somebody, by stated principles"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every experiment."""
    from mt_nodes.cli.main import add_common

    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    examples, usages = [], []
    for name, (module, about) in NAMES.items():
        sub = names.add_parser(name, help=about, description=f"{about}.")
        add_common(sub)
        importlib.import_module(f"mt_nodes.cli.{module}").add_arguments(sub)
        examples.append(str(sub.epilog))
        usages.append(sub.format_usage())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join((*examples, "", *usages))


def run(args: argparse.Namespace) -> int:
    """Carry out the one that was named and return its exit code."""
    return int(importlib.import_module(f"mt_nodes.cli.{NAMES[args.name][0]}").run(args))
