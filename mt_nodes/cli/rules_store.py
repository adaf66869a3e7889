# SPDX-License-Identifier: Apache-2.0
"""``mt rules list``, ``import`` and ``export``, and the store that all verbs of ``mt rules`` share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError

if TYPE_CHECKING:
    from mt_nodes.rules.nearest_texts import Indexer
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.store_entry import Entry


def add_store(parser: argparse.ArgumentParser, otherwise: str = "", *, writes: bool = False) -> None:
    """Declare ``--store``, ``--ontology`` and, for verbs that write, ``--wait``.

    ``otherwise``: what happens without a store; empty: it is required.
    """
    help_ = f"SQLite file with relations ({otherwise})" if otherwise else "SQLite file with relations; may be new"
    parser.add_argument("--store", type=Path, metavar="FILE", required=not otherwise, help=help_)
    parser.add_argument(
        "--ontology",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="YAML file that extends the ontology, the words that relations may use",
    )
    if writes:
        wait = "seconds to wait while another process writes the store (default %(default)s)"
        parser.add_argument("--wait", type=float, default=10.0, metavar="S", help=wait)


def ontology_of(args: argparse.Namespace) -> Ontology:
    """Return the words that relations may use. Raises UsageError: a file of the user cannot be used."""
    from mt_nodes.rules.ontology import load_ontology

    return load_ontology(*args.ontology)


@contextmanager
def open_store(args: argparse.Namespace, indexer: Indexer | None = None) -> Iterator[Store]:
    """Yield the store of ``--store`` for reading, or the shipped one.

    ``indexer``: what compares meanings; None: latent semantic analysis, which needs no server.
    Raises MtError: it cannot be opened.
    """
    from mt_nodes.rules.nearest_texts import Index
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.shipped_rules import scratch_store, shipped_entries

    ontology = ontology_of(args)
    if args.store is None:
        with scratch_store(shipped_entries(), ontology, indexer or Index) as store:
            yield store
    else:
        with Store(args.store, write=False, ontology=ontology, indexer=indexer or Index) as store:
            yield store


def store_name(args: argparse.Namespace) -> str:
    """Return the name of the store, to be printed."""
    return f"store {args.store}" if args.store else "the shipped store"


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    from mt_nodes.cli.rules_models import add_embedding

    parser.epilog = "example: mt rules list --region germany --find pedestrian"
    parser.add_argument("--region", default="", help="only relations of this region")
    parser.add_argument(
        "--origin", action="append", default=[], help="only relations that this reader extracted; may be given again"
    )
    find = "only relations with all of these words; with --embed those nearest in meaning, nearest first"
    parser.add_argument("--find", default="", metavar="WORDS", help=find)
    _add_rejected(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_embedding(parser)
    add_store(parser, "default: the shipped store")


def _add_rejected(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rejected", action="store_true", help="also relations that the judge of `extract` rejects")


def run_list(args: argparse.Namespace) -> int:
    """List the relations as a table or as JSON."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.rules_models import indexer_of
    from mt_nodes.cli.terminal import table, text

    if args.embed and not args.find.strip():
        raise UsageError("--embed NAME finds relations near in meaning to --find WORDS; give --find, too")
    with indexer_of(args) as indexer, open_store(args, indexer) as store:
        every = store.entries(args.region, args.origin, rejected=True)
        rows = [entry for entry in every if args.rejected or not entry.rejected]
        if args.embed:
            rows = [entry for entry, _ in store.nearest(args.find, rows)]
        elif args.find:
            listed = {entry.index for entry in rows}
            rows = [entry for entry in store.find(args.find) if entry.index in listed]
    if args.json:
        print(json.dumps([_plain(entry) for entry in rows], indent=2, ensure_ascii=False))
        return 0
    if not rows:
        narrowed = args.region or args.origin or args.find
        why = "leave out --region, --origin and --find to list all" if narrowed else "the store is empty"
        text(f"no relation; {why}")
    else:
        table(("no.", "region", "read by", "run", "rules", "what it says"), list(map(_cells, rows)))
    rejected = sum(entry.rejected for entry in every)
    if rejected and not args.rejected:
        text(f"{counted(rejected, 'relation')} rejected by a judge left out; --rejected lists them, too")
    return 0


def _cells(entry: Entry) -> tuple[str, ...]:
    mark = f"rejected, agreement {entry.agreement:.2f}: " if entry.rejected and entry.agreement is not None else ""
    first = (str(entry.index), entry.region, entry.origin, str(entry.executions), " ".join(entry.statement.rules))
    return (*first, f"{mark}{entry.text}")


def _plain(entry: Entry) -> dict[str, Any]:
    from mt_nodes.rules.shipped_rules import ids_of, section_of

    statement, ids = entry.statement, ids_of(entry)
    return {
        "name": ids[0] if ids else f"relation {entry.index}",
        "index": entry.index,
        "relations": list(ids),
        "sections": [section_of(name) for name in ids],
        "text": entry.text,
        **{key: value for key, value in vars(statement).items() if key != "rules"},
        "rules": list(statement.rules),
        **{key: value for key, value in vars(entry).items() if key not in ("statement", "index")},
    }


def add_import_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules import my_relations.csv --store my_rules.sqlite --region my_town"
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help=".csv as in the paper, .yaml or .feature")
    parser.add_argument("--region", default="", help="region of the rules, where a file does not say")
    parser.add_argument(
        "--origin",
        default="manual",
        help="what extracted the relations, where a file does not say (default %(default)s)",
    )
    add_store(parser, writes=True)


def run_import(args: argparse.Namespace) -> int:
    """Import the relations of all files, or none."""
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


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules export relations.feature --store my_rules.sqlite"
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="file to write: .csv as in the paper, .yaml or .feature"
    )
    parser.add_argument("--region", default="", help="only relations of this region")
    parser.add_argument(
        "--origin", action="append", default=[], help="only relations that this reader extracted; may be given again"
    )
    _add_rejected(parser)
    add_store(parser, "default: the shipped store")


def run_export(args: argparse.Namespace) -> int:
    """Write the file, or nothing at all."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.rules.store_files import write

    with open_store(args) as store:
        entries = store.entries(args.region, args.origin, rejected=args.rejected)
    if not entries:
        raise UsageError(f"{store_name(args)}: no relation to write; `mt rules list` shows regions and readers")
    write(entries, args.file)
    text(f"{counted(len(entries), 'relation')} of {store_name(args)} written to {args.file}")
    return 0
