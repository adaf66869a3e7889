# SPDX-License-Identifier: Apache-2.0
"""``mt rules VERB``: from traffic rules to relations."""

from __future__ import annotations

import argparse

from mt_nodes.cli.options import add_verbs, run_verb

VERBS = {
    "extract": ("rules_extract", "Extract relations from traffic rules"),
    "compare": ("rules_compare", "Read rules by several readers; print how far they agree"),
    "check": ("rules_check", "Check that every relation is bound to mutations and a check"),
    "import": ("rules_store", "Import relations from CSV, YAML and .feature files into a store"),
    "export": ("rules_store", "Export the relations of a store to a CSV, YAML or .feature file"),
    "list": ("rules_store", "List the relations of a store"),
    "match": ("rules_match", "Describe frames of a bag and choose a relation for each, with reasons"),
    "review": ("rules_review", "Let people rate relations on a sheet; print the ratings and how far raters agree"),
    "stats": ("rules_check", "Count relations; measure precision and recall of their readers"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every verb."""
    add_verbs(parser, VERBS, "VERB")


def run(args: argparse.Namespace) -> int:
    """Carry out the verb and return its exit code."""
    return run_verb(args, VERBS)
