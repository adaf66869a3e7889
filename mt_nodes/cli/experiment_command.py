# SPDX-License-Identifier: Apache-2.0
"""``mt experiment NAME``: published experiments, each with a command line of its own."""

from __future__ import annotations

import argparse

from mt_nodes.cli.several import add_lines, run_line

NAMES = {
    "noise-outside-roi": ("noise_experiment", "Zhou & Sun, CACM 2019: noise that no obstacle may vanish by"),
    "moral": ("moral", "Tang et al., 2025: whom a stack hits where it cannot but hit somebody, by stated principles"),
    "automt": (
        "automt",
        "Liang et al., 2025: how often follow-ups of traffic rules are valid, and stacks violate them",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every experiment."""
    add_lines(parser, NAMES, "NAME")


def run(args: argparse.Namespace) -> int:
    """Carry out the one that was named and return its exit code."""
    return run_line(args, NAMES)
