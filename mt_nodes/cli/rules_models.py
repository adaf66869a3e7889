# SPDX-License-Identifier: Apache-2.0
"""Models that ``mt rules`` uses: to extract relations, to embed texts, and to describe images."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.options import at_least_one, share, whole_number
from mt_nodes.rules.store_entry import LEAST_SURE

if TYPE_CHECKING:
    from mt_nodes.rules.extraction import Reader, SelfCheck
    from mt_nodes.rules.model_queries import Asker
    from mt_nodes.rules.models import LanguageModel
    from mt_nodes.rules.nearest_texts import Indexer
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.scene_by_model import SeenBy

_MODELS = "YAML file of language models, each with its url"
_ANSWERS, _VECTORS = Path("mt_rules.answers.jsonl"), Path("mt_rules.vectors.jsonl")


@dataclass(frozen=True)
class Readers:
    """Readers of rules, what chooses among their answers (None: the majority), and their models."""

    readers: Sequence[Reader]
    check: SelfCheck | None = None
    askers: Sequence[Asker] = ()

    def usage(self) -> list[dict[str, Any]]:
        """Return the queries, tokens and cost of each model."""
        return [{"model": asker.name, **asker.usage.as_plain(), "cost": asker.cost} for asker in self.askers]


def usage_line(usage: Mapping[str, Any]) -> str:
    """Return the queries, tokens and cost of a model in words."""
    cost = "unknown" if usage["cost"] is None else f"{usage['cost']:.4f}"
    queries = f"{usage['asked']} queries, {usage['cached']} from the cache, {usage['failed']} failed"
    return f"{usage['model']}: {queries}; {usage['tokens_in']} tokens in, {usage['tokens_out']} out, cost {cost}"


def add_answers(parser: argparse.ArgumentParser) -> None:
    """Declare the file of answers."""
    answers = f"cache of the models' answers (default: beside the store, else {_ANSWERS})"
    parser.add_argument("--answers", type=Path, metavar="FILE", help=answers)


def add_embedding(parser: argparse.ArgumentParser) -> None:
    """Declare the model that embeds texts."""
    add = parser.add_argument
    embed = "embedding model of the server in MT_LLM_URL (default: latent semantic analysis, without a server)"
    add("--embed", metavar="NAME", help=embed)
    vectors = f"cache of embeddings (default: beside the store, else {_VECTORS})"
    add("--vectors", type=Path, metavar="FILE", help=vectors)
    add("--models", type=Path, metavar="FILE", help=_MODELS)


@contextmanager
def indexer_of(args: argparse.Namespace) -> Iterator[Indexer]:
    """Yield what compares meanings: the embeddings of ``--embed``, else latent semantic analysis.

    Raises InfrastructureError: the cache is damaged.
    """
    if not args.embed:
        from mt_nodes.rules.nearest_texts import Index

        yield Index
        return
    from mt_nodes.rules.embeddings import Embeddings, FaissIndex
    from mt_nodes.rules.models import FROM_ENVIRONMENT, MODEL
    from mt_nodes.rules.service import Service
    from mt_nodes.rules.vector_file import VectorFile

    with VectorFile(args.vectors or _cache_path(args, _VECTORS)) as vectors:
        name = os.environ.get(MODEL, "") if args.embed == FROM_ENVIRONMENT else args.embed
        embeddings = Embeddings(name, vectors, lambda: Service(_model(args, args.embed)))
        yield lambda texts: FaissIndex(texts, embeddings.vectors)


def add_scene_model(parser: argparse.ArgumentParser) -> None:
    """Declare the model that describes images; :func:`add_embedding` declares the file of models."""
    add = parser.add_argument
    model = "vision-language model of the server in MT_LLM_URL that describes each case (default: none)"
    add("--scene-model", metavar="NAME", help=model)
    samples = "answers per case; facts in which they differ are unknown (default %(default)s)"
    add("--scene-samples", type=at_least_one, default=3, metavar="N", help=samples)
    add("--scene-clip", action="store_true", help="also show it the frames before and after")
    add_answers(parser)


@contextmanager
def scene_reader_of(args: argparse.Namespace, ontology: Ontology) -> Iterator[SeenBy | None]:
    """Yield the model of ``--scene-model``; None without.

    Raises MtError: the model lacks a setting or its library, or the cache of answers cannot be used.
    """
    if not args.scene_model:
        yield None
        return
    from mt_nodes.rules.chat import Chat
    from mt_nodes.rules.model_answers import Answers
    from mt_nodes.rules.model_queries import Asker
    from mt_nodes.rules.scene_by_model import SceneReader

    chat = Chat(_model(args, args.scene_model))
    with Answers(args.answers or _cache_path(args, _ANSWERS)) as answers:
        yield SceneReader(Asker(chat, answers), ontology, args.scene_samples, args.scene_clip)


def _model(args: argparse.Namespace, name: str) -> LanguageModel:
    """Return a model from the file of models, else of the server in the environment."""
    from mt_nodes.rules.models import model_named

    return model_named(name, args.models, os.environ)


def _cache_path(args: argparse.Namespace, default: Path) -> Path:
    """Return the path of a cache beside the store; the default without a store."""
    return args.store.with_suffix("".join(default.suffixes)) if args.store else default


def add_models(parser: argparse.ArgumentParser) -> None:
    """Declare the models that extract relations."""
    add = parser.add_argument
    model = (
        "language model of the server in MT_LLM_URL (key: MT_LLM_KEY); may be given again; "
        "'env': the models of MT_LLM_MODEL; without a server: 'classifier' and 'parser' (default: the classifier, and "
        "the parser for the shipped rules)"
    )
    add("--model", action="append", default=[], metavar="NAME", help=model)
    add("--models", type=Path, metavar="FILE", help=_MODELS)
    add_answers(parser)
    samples = "votes of each judge on each answer, which choose one; 0: the majority wins (default %(default)s)"
    add("--samples", type=whole_number, default=3, metavar="N", help=samples)
    judge = (
        "model that votes on the answers, from --models or of the server in MT_LLM_URL; may be given again "
        "(default: where several readers read, the models themselves)"
    )
    add("--judge", action="append", default=[], metavar="NAME", help=judge)
    sure = "how sure the classifier must be of a reading, 0 to 1 (default %(default)s)"
    add("--least-sure", type=share, default=LEAST_SURE, metavar="SHARE", help=sure)
    least = "share of yes votes below which an answer is rejected: marked, and in no suite (default %(default)s)"
    add("--least-agreement", type=share, default=0.5, metavar="SHARE", help=least)


@contextmanager
def readers_of(args: argparse.Namespace, ontology: Ontology) -> Iterator[Readers]:
    """Yield the readers: :class:`~mt_nodes.rules.extraction.DefaultReader` alone where nothing is named.

    Raises MtError: a model lacks a setting or its library, or the cache of answers cannot be used.
    """
    from mt_nodes.rules.extraction import ModelReader

    models = _models(args)
    judges = _judges(args, models)
    built_in = _built_in(args, ontology, bool(models))
    if not models and not judges:
        yield Readers(built_in)
        return
    from mt_nodes.rules.chat import Chat
    from mt_nodes.rules.extraction import SelfCheck
    from mt_nodes.rules.model_answers import Answers
    from mt_nodes.rules.model_queries import Asker
    from mt_nodes.rules.prompts import Prompts

    prompts = Prompts(ontology)
    with Answers(args.answers or _cache_path(args, _ANSWERS)) as answers:
        askers = [Asker(Chat(model), answers) for model in models]
        readers: list[Reader] = [ModelReader(asker, prompts, ontology, args.strict) for asker in askers]
        readers += built_in
        voters = [Asker(Chat(model), answers) for model in judges]
        voters = voters or (askers if len(readers) > 1 else [])
        check = SelfCheck(voters, prompts, args.samples, args.least_agreement) if args.samples and voters else None
        yield Readers(readers, check, list(dict.fromkeys([*askers, *voters])))


def _built_in(args: argparse.Namespace, ontology: Ontology, models: bool) -> list[Reader]:
    """Return the readers that need no server, the parser first; the default one where nothing is named."""
    from mt_nodes.rules.extraction import ClassifierReader, DefaultReader, ParserReader
    from mt_nodes.rules.store_entry import CLASSIFIER, PARSER

    readers: dict[str, Reader] = {
        PARSER: ParserReader(ontology, args.strict),
        CLASSIFIER: ClassifierReader(ontology, args.strict, args.least_sure),
    }
    named = [reader for name, reader in readers.items() if name in args.model]
    return named or ([] if models else [DefaultReader(ontology, args.strict, args.least_sure)])


def _models(args: argparse.Namespace) -> list[LanguageModel]:
    from mt_nodes.rules.models import load_models, models_named
    from mt_nodes.rules.store_entry import CLASSIFIER, PARSER

    named = [name for name in args.model if name not in (PARSER, CLASSIFIER)]
    found = [*load_models(args.models, os.environ)] if args.models else []
    found = [model for model in found if model.name not in args.judge]
    return found + ([*models_named(named, os.environ)] if named else [])


def _judges(args: argparse.Namespace, readers: Sequence[LanguageModel]) -> list[LanguageModel]:
    """Return the models of ``--judge``."""
    from mt_nodes.rules.store_entry import CLASSIFIER, PARSER

    if built_in := {PARSER, CLASSIFIER} & set(args.judge):
        raise UsageError(f"--judge {min(built_in)}: it answers no questions; name a language model")
    if args.judge and not args.samples:
        raise UsageError("--judge: got --samples 0, expected 1 vote or more")
    judges = [_model(args, name) for name in args.judge]
    same = {(model.url, model.model) for model in readers}
    if both := next((judge.name for judge in judges if (judge.url, judge.model) in same), ""):
        raise UsageError(f"--judge {both}: it is a reader, too, and would vote on its own answers; name another model")
    return judges
