# SPDX-License-Identifier: Apache-2.0
"""Which relations suit a stack and a bag: candidates of all families, of which those stay that decide something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.plugins import name_of
from mt_nodes.base.wording import counted, first_sentence
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.named_suites import FAMILIES, family_of
from mt_nodes.relations.relation import Relation, load_relation
from mt_nodes.runs.relation_choice import ALL, choose_relations, left_out_lines, suite_members
from mt_nodes.stacks.stack import Stack

#: Relations per trial, and trials at most.
BATCH, TRIALS = 14, 3
#: How a file begins that was written by us.
HEADER_START = "# made by "
_WHOLE_DRIVE = "it judges a drive as a whole, so a bag gives it one verdict"
Summary = Mapping[str, Any]


@dataclass(frozen=True)
class SuggestedRelation:
    """A relation that decided something on the first frames of a bag.

    Attributes:
        id: of it. family: suite that it stands for. because: its statement.
        word: its name, or the path of its file.
        decided: frames that it decided. tried: frames that it was offered. violated: frames that violated it.
    """

    id: str
    word: str
    family: str
    because: str
    decided: int
    tried: int
    violated: int

    @property
    def counts(self) -> str:
        """Frames that it decided, of those tried, and those that violated it."""
        return f"{self.decided}/{self.tried} decided" + (f", {self.violated} violated" if self.violated else "")

    @property
    def why(self) -> str:
        """What it tests, and how it fared."""
        found = f", violated in {self.violated}" if self.violated else ""
        family = f"{self.family}: " if self.family else ""
        return f"{family}decided in {self.decided} of {self.tried} frames tried{found}"


@dataclass(frozen=True)
class Suggestion:
    """Relations for a stack and a bag.

    ``stack``: its name. ``relations``: suggested ones. ``left_out``: relation -> why. ``notes``: what else there is to
    know, such as that the stack differs from itself.
    """

    stack: str
    relations: tuple[SuggestedRelation, ...]
    left_out: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        rows = [{"id": r.id, "why": r.why, "because": r.because} for r in self.relations]
        return {"stack": self.stack, "relations": rows, "left_out": dict(self.left_out), "notes": list(self.notes)}

    def as_yaml(self, command: str) -> str:
        """Return a suite file for ``--relations``. ``command``: that made it."""
        head = (f"{HEADER_START}`{command}`, for stack '{self.stack}'", *(f"# note: {note}" for note in self.notes))
        rows = (f"  - {one.word}  # {one.why}; {first_sentence(one.because)}" for one in self.relations)
        rest = (f"# {line}" for line in left_out_lines(self.left_out))
        return "\n".join((*head, "relations:", *rows, *rest)) + "\n"


@dataclass(eq=False)
class SuiteSearch:
    """Chooses candidates, has them tried, and keeps those that decide something.

    ``stack``: under test. ``words``: to choose from, as ``--relations`` takes them. ``most``: so many relations at
    most.
    Raises UsageError: the stack can be judged by none.
    """

    stack: Stack
    words: Sequence[str] = (ALL,)
    most: int = 12
    left_out: dict[str, str] = field(default_factory=dict)
    found: list[SuggestedRelation] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice = choose_relations(self.words, partial(incompatibility, stack=self.stack))
        self.left_out |= choice.left_out
        relations = [load_relation(name) for name in choice.relations]
        self._words = {r.id: _word(r, name) for r, name in zip(relations, choice.relations, strict=True)}
        for relation in relations:
            if reason := incompatibility(relation, self.stack):  # it was named itself
                raise UsageError(reason)
            if isinstance(relation.check, SequenceCheck):
                self.left_out[relation.id] = _WHOLE_DRIVE
        self._waiting = in_turns([r for r in relations if r.id not in self.left_out])
        self._because = {r.id: r.because for r in relations}
        self._checks = {r.id: name_of(type(r.check)) for r in relations}
        self._undecided: Counter[str] = Counter()
        self._trials = 0

    def run(self, play: Callable[[Sequence[str]], Summary]) -> Suggestion:
        """Try candidates until there are enough, and return the suggestion.

        ``play``: replays the first frames with these relations, and returns the summary.
        Raises MtError: the stack or the bag failed.
        """
        while self._waiting and self._trials < TRIALS and (len(self.found) < self.most or self._missing):
            # What decided nothing once hardly will with another mutation: the same answers are lacking.
            self._waiting.sort(key=lambda one: (self._undecided[self._checks[one[0]]], self._decided(one[1])))
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            self._take(batch, play([self._words[name] for name, _ in batch]))
            self._trials += 1
        chosen = self._in_turns()
        for one in chosen[self.most :]:
            self.left_out[one.id] = f"it decides frames, too; {self.most} are enough to begin with"
        for name, family in self._waiting:
            others = "others of its family are in" if self._decided(family) else "others of its family decided nothing"
            self.left_out[name] = f"it was not tried: {others}"
        return Suggestion(self.stack.name, tuple(chosen[: self.most]), self.left_out, tuple(self.notes))

    def _decided(self, family: str) -> int:
        return sum(one.family == family for one in self.found)

    @property
    def _missing(self) -> bool:
        """Whether there are candidates of a family of which none decided anything."""
        return any(not self._decided(family) for _, family in self._waiting)

    def _in_turns(self) -> list[SuggestedRelation]:
        """Return what was found, one of each family before the second of any."""
        counts: Counter[str] = Counter()
        rounds = []
        for one in self.found:
            counts[one.family] += 1
            rounds.append(counts[one.family])
        order = sorted(zip(rounds, range(len(self.found)), strict=True))
        return [self.found[at] for _, at in order]

    def _take(self, batch: Sequence[tuple[str, str]], summary: Summary) -> None:
        _refuse_trouble(summary)
        for name, family in batch:
            row = summary["relations"][name]
            tried = sum(row["outcomes"].values())
            if row["decided"]:
                counts = (row["decided"], tried, row["violated"])
                self.found.append(SuggestedRelation(name, self._words[name], family, self._because[name], *counts))
            else:
                self._undecided[self._checks[name]] += 1
                reasons = row.get("undecided") or [{"reason": row["why"]}]
                self.left_out[name] = f"it decides nothing in the frames tried: {reasons[0]['reason']}"
            if flickers := sum(row[arm]["violated"] for arm in ("control", "sham")):
                text = f"control or sham violate the check of {name} in {counted(flickers, 'pair')}"
                self.notes[f"{text}: the stack differs from itself, so few violations prove nothing"] = None


def in_turns(relations: Sequence[Relation]) -> list[tuple[str, str]]:
    """Return relations with their families, different ones first.

    Families take turns. Of a family that relation is next whose mutation, and whose kind of output, was taken least
    often; then a necessary one, then one of the suite ``smoke``.
    """
    families = (*FAMILIES, "")  # the last: the user's own
    left = {family: [r for r in relations if family_of(r.id) == family] for family in families}
    taken: Counter[str] = Counter()
    order: list[tuple[str, str]] = []
    while any(left.values()):
        for family in (name for name in families if left[name]):
            best = min(left[family], key=lambda one: _place(one, taken))
            left[family].remove(best)
            taken.update((_mutation(best), *_judged_outputs(best)))
            order.append((best.id, family))
    return order


def _word(relation: Relation, name: str) -> str:
    return name if name == relation.id else str(Path(name).resolve())


def _place(relation: Relation, taken: Mapping[str, int]) -> tuple[int, int, bool, int, str]:
    decided, quick = min(taken.get(role, 0) for role in _judged_outputs(relation)), suite_members("smoke")
    rank = quick.index(relation.id) if relation.id in quick else len(quick)
    return taken.get(_mutation(relation), 0), decided, relation.kind != "necessary", rank, relation.id


def _mutation(relation: Relation) -> str:
    return name_of(type(relation.mutate[0]))


def _judged_outputs(relation: Relation) -> Iterable[str]:
    return relation.check.needs if relation.check and relation.check.needs else ("detections",)


def _refuse_trouble(summary: Summary) -> None:
    if trouble := summary["usage"]:
        raise UsageError(trouble)
    if trouble := summary["infrastructure"]:
        raise InfrastructureError(trouble)
    if summary["interrupted"]:
        raise KeyboardInterrupt
