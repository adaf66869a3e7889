# SPDX-License-Identifier: Apache-2.0
"""``mt rules VERB``: from traffic rules to relations."""

from __future__ import annotations

import argparse

from mt_nodes.cli.several import add_lines, run_line

NAMES = {
    "extract": ("rules_extract", "Read rules, and keep what they say as relations"),
    "check": ("rules_check", "Say whether every relation is bound to a mutation and a check"),
    "import": ("rules_import", "Take relations of CSV, YAML and .feature files into a store"),
    "export": ("rules_export", "Write the relations of a store to a CSV, YAML or .feature file"),
    "list": ("rules_list", "List the relations of a store"),
    "match": ("rules_match", "Describe a frame of a bag and choose a relation for it, with reasons"),
    "stats": ("rules_stats", "Count relations, and say how well rules are read"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every verb."""
    add_lines(parser, NAMES, "VERB")


def run(args: argparse.Namespace) -> int:
    """Carry out the verb that was named and return its exit code."""
    return run_line(args, NAMES)
