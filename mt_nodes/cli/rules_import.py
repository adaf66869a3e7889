# SPDX-License-Identifier: Apache-2.0
"""``mt rules import FILE… --store FILE``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.cli.rules_store import add_store, ontology_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules import my_relations.csv --store my_rules.sqlite --region my_town"
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help=".csv as in the paper, .yaml or .feature")
    parser.add_argument("--region", default="", help="whose rules they are, where a file does not say")
    parser.add_argument("--origin", default="manual", help="what read them, if a file does not say (%(default)s)")
    add_store(parser, writes=True)


def run(args: argparse.Namespace) -> int:
    """Take in the relations of all files, or none."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.store_files import Reader

    ontology = ontology_of(args)
    reader = Reader(ontology, args.region, args.origin)
    rows = [entry for path in args.files for entry in reader.read(path)]
    with Store(args.store, wait_s=args.wait, ontology=ontology) as store:
        before = len(store.entries())
        store.add(rows)
        new = len(store.entries()) - before
    text(f"{counted(len(rows), 'relation')} read, {new} new in {args.store}, which has {before + new}")
    return 0
