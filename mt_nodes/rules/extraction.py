# SPDX-License-Identifier: Apache-2.0
"""From rules to relations: the parser and language models read each rule in parallel, and one reading is chosen.

The deterministic parser (:mod:`mt_nodes.rules.parser`) is one reader among others, and the only one that needs no
network. An interrupted run can be repeated: answers that its file (:mod:`mt_nodes.rules.model_answers`) holds are not
requested again.

Judges readings of a rule by three yes/no questions to language models (arXiv 2510.19438, section III-A2).

The score of a candidate c over S samples of Q = 3 questions is ``H(c) = (1 / (S Q)) sum_s sum_q x[s, q]``, x = 1 for
"no": the share of "no". The lowest wins. Anything but exactly "yes" is a "no", so an unreadable answer scores 1, never
0. Of equal scores the reading of most models wins, then that of the first model. The agreement is ``1 - H(c)``: a
reading with less of it than a threshold is rejected. The paper keeps the best one whatever its score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.pool import ThreadPool
from typing import Any, Protocol

from mt_nodes.rules.answer_statements import BadAnswer, answer_schema, json_in, read_answer
from mt_nodes.rules.model_queries import Asker, whole
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.parser import LONGEST, Reading, read_rule
from mt_nodes.rules.prompts import Prompts
from mt_nodes.rules.rule_classifier import trained
from mt_nodes.rules.rule_sets import Rule, load_rule_set, shipped_rule_sets
from mt_nodes.rules.service import NoAnswer
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.store_entry import CLASSIFIER, LEAST_AGREEMENT, LEAST_SURE, PARSER, Entry, sentence

QUESTIONS = ("mentioned", "agrees", "fits")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {question: {"type": "string", "enum": ["yes", "no"]} for question in QUESTIONS},
    "required": list(QUESTIONS),
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Score:
    """Share of "no" (0 best, 1 worst); ``complete``: every sample was answered, readable or not."""

    value: float
    complete: bool = True

    @property
    def agreement(self) -> float:
        """Share of "yes"."""
        return 1.0 - self.value


@dataclass(frozen=True)
class SelfCheck:
    """Asks each of the ``judges`` ``samples`` times; rejects what has less than ``least_agreement``."""

    judges: Sequence[Asker]
    prompts: Prompts
    samples: int = 3
    least_agreement: float = LEAST_AGREEMENT

    def rejects(self, score: Score) -> bool:
        """Whether a reading is rejected; not while questions are unanswered: another run asks them again."""
        return score.complete and score.agreement < self.least_agreement

    def score(self, text: str, statements: Sequence[Statement]) -> Score:
        """Return the score of a reading of a rule.

        Raises InfrastructureError, UsageError: as for :meth:`mt_nodes.rules.model_queries.Asker.ask`.
        """
        messages = self.prompts.self_check(text, map(sentence, statements))
        nos, complete = 0, True
        for judge in self.judges:
            for sample in range(self.samples):
                try:
                    nos += _nos(judge, messages, sample)
                except NoAnswer:
                    nos, complete = nos + len(QUESTIONS), False
        return Score(nos / (len(self.judges) * self.samples * len(QUESTIONS)), complete)


def _nos(judge: Asker, messages: Any, sample: int) -> int:
    answer = judge.ask(messages, SCHEMA, sample)
    try:
        data = json_in(whole(answer.reply))
    except BadAnswer:
        return len(QUESTIONS)
    return sum(data.get(question) != "yes" for question in QUESTIONS)


@dataclass(frozen=True)
class CandidateReading:
    """One reader's reading of a rule.

    Attributes:
        origin: the reader's name. prompt_id, answer_id: of :mod:`mt_nodes.rules.model_answers`, empty for the parser.
        score: of the self-check, 0 best; None: not checked. complete: another run cannot add an answer.
        rejected: the judge's agreement is below the threshold.
    """

    origin: str
    reading: Reading
    prompt_id: str = ""
    answer_id: str = ""
    score: float | None = None
    complete: bool = True
    rejected: bool = False

    @property
    def agreement(self) -> float | None:
        """Share of "yes" of the judge, 1 best; None: not checked."""
        return None if self.score is None else 1.0 - self.score

    def entries(self, region: str) -> tuple[Entry, ...]:
        """Return its statements as relations for the store, with the judge's mark."""
        return tuple(
            Entry(one, region, self.origin, self.prompt_id, self.answer_id, 0, 0, self.agreement, self.rejected)
            for one in self.reading.statements
        )


@dataclass(frozen=True)
class Extraction:
    """All readers' readings of a rule, and the chosen one; None: no reader finds a statement that the judge accepts."""

    rule: Rule
    candidates: tuple[CandidateReading, ...]
    chosen: CandidateReading | None

    @property
    def rejected(self) -> tuple[CandidateReading, ...]:
        """Readings that the judge rejects, best first."""
        return tuple(sorted((one for one in self.candidates if one.rejected), key=lambda one: one.score or 0.0))

    @property
    def complete(self) -> bool:
        """Whether every model answered; if not, another run may change the choice."""
        return all(one.complete for one in self.candidates)

    @property
    def why(self) -> str:
        """Why there is no statement, by reader; empty if there is one."""
        return "" if self.chosen else "; ".join(f"{one.origin}: {_why_not(one)}" for one in self.candidates)

    def entries(self, region: str) -> tuple[Entry, ...]:
        """Return the chosen statements as relations for the store; if all are rejected the best ones, marked."""
        kept = self.chosen or next(iter(self.rejected), None)
        return kept.entries(region) if kept else ()


def _why_not(one: CandidateReading) -> str:
    return f"rejected by the judge, agreement {one.agreement:.2f}" if one.rejected else one.reading.why


class Reader(Protocol):
    """Reads rules; called by several threads, one rule at a time."""

    def read(self, rule: Rule) -> CandidateReading:
        """Return its reading of a rule."""


@dataclass(frozen=True)
class ParserReader:
    """The deterministic parser."""

    ontology: Ontology
    strict: bool = False

    def read(self, rule: Rule) -> CandidateReading:
        """Return its reading of a rule."""
        return CandidateReading(PARSER, read_rule(rule.text, self.ontology, rule.id, self.strict))


@dataclass(frozen=True)
class ClassifierReader:
    """The classifier of rules, which learns at the first rule; ``strict`` as in :class:`ParserReader`.

    ``least_sure``: how sure it must be, 0 to 1; of what it is less sure of there is no reading.
    """

    ontology: Ontology
    strict: bool = False
    least_sure: float = LEAST_SURE

    def read(self, rule: Rule) -> CandidateReading:
        """Return its reading of a rule."""
        reading = trained(self.ontology).read(rule.text, rule.id, self.strict, self.least_sure)
        return CandidateReading(CLASSIFIER, reading)


@dataclass(frozen=True)
class DefaultReader:
    """Who reads where no reader is named: of the shipped rules the parser, whose readings people have checked.

    All others are the classifier's: of what the parser reads, far more is wrong. Where both read the same, the parser's
    statement counts, which has its details, as where something is. Of what the classifier is not sure of, the reason
    tells what each of them makes of it. Arguments as of :class:`ClassifierReader`.
    """

    ontology: Ontology
    strict: bool = False
    least_sure: float = LEAST_SURE

    def read(self, rule: Rule) -> CandidateReading:
        """Return its reading of a rule."""
        parsed = ParserReader(self.ontology, self.strict).read(rule)
        if rule.text in _shipped_texts():
            return parsed
        found = ClassifierReader(self.ontology, self.strict, self.least_sure).read(rule)
        if found.reading.statements:
            alike = [one for one in parsed.reading.statements if _triple(one) == _triple(found.reading.statements[0])]
            return replace(found, reading=Reading(tuple(alike[:1]))) if alike else found
        said = "; ".join(f"'{' '.join(_triple(one))}'" for one in parsed.reading.statements)
        return replace(found, reading=Reading(why=f"{found.reading.why}; {PARSER}: {said or parsed.reading.why}"))


def _triple(one: Statement) -> tuple[str, str, str]:
    return one.road, one.element, one.behaviour


@lru_cache
def _shipped_texts() -> frozenset[str]:
    return frozenset(rule.text for name in shipped_rule_sets() for rule in load_rule_set(name).rules.values())


@dataclass(frozen=True)
class ModelReader:
    """A language model; ``strict`` as in :func:`mt_nodes.rules.parser.read_rule`."""

    asker: Asker
    prompts: Prompts
    ontology: Ontology
    strict: bool = False

    def read(self, rule: Rule) -> CandidateReading:
        """Return its reading of a rule; accepts only statements of the ontology and of the rule."""
        name = self.asker.name
        if not rule.text.strip():
            return CandidateReading(name, Reading(why="the rule is empty"))
        if len(rule.text) > LONGEST:
            return CandidateReading(
                name, Reading(why=f"{len(rule.text):,} characters, at most {LONGEST:,}: one rule at a time")
            )
        try:
            read, answer = self.asker.ask_until(
                self.prompts,
                self.prompts.extract(rule.text),
                answer_schema(self.ontology),
                lambda reply: read_answer(reply, rule.text, self.ontology, rule.id, self.strict),
            )
        except NoAnswer as error:
            return CandidateReading(name, Reading(why=str(error)), complete=False)
        reading = Reading(why=f"no answer passed, the last: {read}") if isinstance(read, BadAnswer) else read
        return CandidateReading(name, reading, answer.prompt_id, answer.id)


def extract(rules: Iterable[Rule], readers: Sequence[Reader], check: SelfCheck | None = None) -> Iterator[Extraction]:
    """Yield the readings of each rule, in order; readers work in parallel.

    ``check``: scores the readings and rejects some; without it the most frequent reading is chosen, of several such
    that of the first reader.
    Raises InfrastructureError, UsageError: a model fails repeatedly or refuses; earlier answers are kept.
    """
    # `map` of this pool ends after all threads, so that no answer is lost to another's error; an interrupt does not
    # wait.
    with ThreadPool(max(1, len(readers))) as pool:
        for rule in rules:
            found = pool.starmap(_read, [(reader, rule) for reader in readers])
            yield _chosen(rule, tuple(_scored(rule, one, check) for one in found))


def _read(reader: Reader, rule: Rule) -> CandidateReading:
    return reader.read(rule)


def _scored(rule: Rule, one: CandidateReading, check: SelfCheck | None) -> CandidateReading:
    if check is None or not one.reading.statements:
        return one
    score = check.score(rule.text, one.reading.statements)
    return replace(one, score=score.value, complete=score.complete, rejected=check.rejects(score))


def _chosen(rule: Rule, candidates: tuple[CandidateReading, ...]) -> Extraction:
    nonempty = [one for one in candidates if one.reading.statements and not one.rejected]
    meanings = [_meaning(one) for one in nonempty]
    best = min(nonempty, key=lambda one: (one.score or 0.0, -meanings.count(_meaning(one))), default=None)
    return Extraction(rule, candidates, best)


def _meaning(one: CandidateReading) -> frozenset[Statement]:
    return frozenset(one.reading.statements)
