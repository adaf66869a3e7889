# SPDX-License-Identifier: Apache-2.0
"""Who reads rules for ``mt rules extract``: the deterministic parser, or language models side by side."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.replay_command import whole_number

if TYPE_CHECKING:
    from mt_nodes.rules.asking import Asker
    from mt_nodes.rules.extraction import Reader
    from mt_nodes.rules.models import Model
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.self_check import SelfCheck

_ANSWERS = Path("mt_rules.answers.jsonl")


@dataclass(frozen=True)
class Readers:
    """Who reads, what chooses among them (None: the majority), and the models that are asked."""

    readers: Sequence[Reader]
    check: SelfCheck | None = None
    askers: Sequence[Asker] = ()

    def usage(self) -> list[dict[str, Any]]:
        """Return what each model took."""
        return [{"model": asker.name, **vars(asker.usage), "cost": asker.cost} for asker in self.askers]


def add_models(parser: argparse.ArgumentParser) -> None:
    """Declare which models are asked."""
    add = parser.add_argument
    model = "model of the server in MT_LLM_URL (key: MT_LLM_KEY); may be given again; 'parser': the parser beside them"
    add("--model", action="append", default=[], metavar="NAME", help=model)
    add("--models", type=Path, metavar="FILE", help="YAML file of models, each with its url")
    answers = f"answers so far, not asked for again (default: beside the store, else {_ANSWERS})"
    add("--answers", type=Path, metavar="FILE", help=answers)
    samples = "how often each model is asked about each reading, to choose one; 0: the majority (default %(default)s)"
    add("--samples", type=whole_number, default=3, metavar="N", help=samples)


@contextmanager
def readers_of(args: argparse.Namespace, ontology: Ontology) -> Iterator[Readers]:
    """Yield who reads: the parser alone where no model is named.

    Raises:
        MtError: a model is not fully told, its library is missing, or the file of answers cannot be used.
    """
    from mt_nodes.rules.extraction import ModelReader, ParserReader
    from mt_nodes.rules.store_entry import PARSER

    parser = ParserReader(ontology, args.strict)
    models = _models(args)
    if not models:
        yield Readers([parser])
        return
    from mt_nodes.rules.answers import Answers
    from mt_nodes.rules.asking import Asker
    from mt_nodes.rules.chat import Chat
    from mt_nodes.rules.prompts import Prompts
    from mt_nodes.rules.self_check import SelfCheck

    prompts, beside = Prompts(ontology), [parser] if PARSER in args.model else []
    path = args.answers or (args.store.with_suffix(".answers.jsonl") if args.store else _ANSWERS)
    with Answers(path) as answers:
        askers = [Asker(Chat(model), answers) for model in models]
        readers: list[Reader] = [ModelReader(asker, prompts, ontology, args.strict) for asker in askers]
        readers += beside
        check = SelfCheck(askers, prompts, args.samples) if args.samples > 0 and len(readers) > 1 else None
        yield Readers(readers, check, askers)


def _models(args: argparse.Namespace) -> list[Model]:
    from mt_nodes.rules.models import MODEL, load_models, models_of_environment
    from mt_nodes.rules.store_entry import PARSER

    named = ",".join(name for name in args.model if name != PARSER)
    found = [*load_models(args.models, os.environ)] if args.models else []
    return found + ([*models_of_environment({**os.environ, MODEL: named})] if named else [])
