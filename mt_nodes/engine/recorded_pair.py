# SPDX-License-Identifier: Apache-2.0
"""A pair as a finished run left it, to be made once more."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base import plugins, resources
from mt_nodes.base.directories import cache_dir, unused, write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.data.datasets.dataset_name import exists, located
from mt_nodes.data.verdict import Outcome, Pair, Verdict
from mt_nodes.engine.case_plan import FILE
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import baseline_of, find_followup, find_followups
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.reduction.reduction import FILE as REDUCTION
from mt_nodes.engine.run_record import STACK_FILE, read_record, refuse_foreign_record
from mt_nodes.relations.relation import load_relation


@dataclass(frozen=True)
class RecordedPair:
    """A pair as a finished run left it.

    Attributes:
        directory: results of the run. about: its ``run.json``.
        pair: which one. verdict: how it ended. sha256: of its follow-up, by the ledger; of a pair that stands for an
            episode, of all its follow-ups' in a row; of a pair of drives, of the trace that the follow-up left.
        baseline_sha256: of what the source arm was given in place of the source; empty where that was the source.
    """

    directory: Path
    about: dict[str, Any]
    pair: Pair
    verdict: Verdict
    sha256: str
    baseline_sha256: str = ""

    @classmethod
    def find(cls, directory: Path, text: str) -> RecordedPair:
        """Look a pair up, and the plugins that the run was given.

        Raises UsageError: there is no such run, pair or follow-up; or it names code, and this user has not written it.
        InfrastructureError: what there is is damaged.
        """
        pair, about = Pair.parse(text), read_record(directory)
        refuse_foreign_record(directory, about)
        finished = cls(directory, about, pair, _verdict(directory, pair), "")
        plugins.add_directories(Path(finished.located(name)) for name in about["request"].get("plugins", ()))
        lines = [find_followup(directory, pair)] if pair.bundle is not None else find_followups(directory, pair)
        sha256, milder = combined_sha256([str(line["sha256"]) for line in lines]), [baseline_of(line) for line in lines]
        return dataclasses.replace(
            finished, sha256=sha256, baseline_sha256=combined_sha256([str(m["sha256"]) for m in milder if m])
        )

    def refuse_unless_violated(self) -> None:
        """Refuse a pair that fails nothing. Raises UsageError: it was not violated."""
        if (outcome := self.verdict.outcome) is not Outcome.VIOLATED:
            got = f"{self.directory}: pair '{self.pair}' ended as {outcome.value}"
            raise UsageError(f"{got}, expected a VIOLATED one; pairs.csv lists them")

    @property
    def live(self) -> bool:
        """Whether it was a run of `mt live`, whose input is gone but for what evidence holds."""
        return not self.driven and "bags" not in self.about["request"]

    @property
    def driven(self) -> bool:
        """Whether it was a run of `mt scenario`, whose pairs are drives."""
        return "scenarios" in self.about["request"]

    @property
    def evidence(self) -> Path:
        """Where the evidence of the pair is, if it was kept."""
        return self.directory / "evidence" / evidence_name(self.pair)

    def request(self, transport: str = "", bag: str = "") -> ReplayRequest:
        """Return the request of a replay, restricted to this pair.

        Files that are not found from here are looked for from where the run was started. It goes in lockstep, which
        time has no part in.
        ``transport``: another one than the run's. ``bag``: where the pair's bag is now.
        Raises UsageError: it was no replay; the bag or the relation is not there.
        """
        if self.live:
            raise UsageError(
                f"{self.directory}: got a run of `mt live`, whose input is gone; expected one of `mt replay`. What is "
                f"kept of a violated pair is in {self.evidence}"
            )
        original = ReplayRequest.from_plain(self.about["request"])
        bags = [self.located(name) for name in original.bags]
        place = self.pair.episode - original.first_episode
        bags[place] = bag or bags[place]
        if not exists(bags[place]):
            raise UsageError(f"the run's bag {bags[place]} is not there; say where it is now with --bag")
        return dataclasses.replace(
            original,
            bags=tuple(bags),
            relations=(self.relation(original.relations),),
            **self._stack(original),
            transforms=self.located(original.transforms),
            transport=transport or original.transport,
            pace="lockstep",
            waivers="",
            plan="",
            cases=original.cases and str(self.directory.resolve() / FILE),
            shrunk=original.shrunk and str(self.directory.resolve() / REDUCTION),
            first_pairs=(),
            only=str(self.pair),
            recorded=str(self.directory.resolve()),
        )

    def new_directory(self) -> Path:
        """Return where the results of a reproduction go when nothing else is said."""
        return unused(self.directory / "reproduced" / str(self.pair).replace("/", "_"))

    def located(self, name: str) -> str:
        """Return where a file or directory is that the run named; as it is where it is not found."""
        moved = located(name, Path(self.about.get("directory", ".")))
        return moved if name and not exists(name) and exists(moved) else name

    def _stack(self, original: ReplayRequest) -> dict[str, Any]:
        """Return stack and faults of the request; where the stack file is gone, what the run kept, faults planted."""
        name, kept = self.located(original.stack), self.directory.resolve() / STACK_FILE
        if name in resources.shipped("stacks") or exists(name) or not kept.is_file():
            return {"stack": name}
        return {"stack": str(kept), "faults": ()}

    def relation(self, requested: Sequence[str]) -> str:
        """Return the name, or file, of the relation whose check judged the pair, of those that the run was asked for.

        Where its file is gone, one with what the run kept of it. Raises UsageError: none has its id any more.
        """
        names = [self.located(name) for name in requested]
        there = [name for name in names if exists(name) or Path(name).suffix not in (".yaml", ".yml")]
        for name in there:
            if load_relation(name).id == self.pair.judged_for:
                return name
        kept = [row for row in self.about["relations"] if row["id"] == self.pair.judged_for]
        if len(there) < len(names) and kept:
            return str(_kept_relation(kept[0]))
        raise UsageError(
            f"none of the run's relations ({', '.join(names)}) has the id '{self.pair.judged_for}' any more"
        )


def command(directory: Path, pair: Pair) -> str:
    """Return what to type to have a pair of a finished run made again."""
    return shlex.join(["mt", "reproduce", str(directory.resolve()), str(pair)])


def combined_sha256(hashes: Sequence[str]) -> str:
    """Return one hash as it is, of several the SHA-256 of their texts in a row, empty of none."""
    if len(hashes) <= 1:
        return "".join(hashes)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _kept_relation(row: dict[str, Any]) -> Path:
    """Write a relation as a run kept it to a file of its own, and return its path."""
    text = yaml.safe_dump(row, sort_keys=False, allow_unicode=True)
    path = cache_dir() / "relations" / f"{hashlib.sha256(text.encode()).hexdigest()}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    return path


def _verdict(directory: Path, pair: Pair) -> Verdict:
    shared = []
    for line in read_journal(directory / "result.jsonl"):
        if line["type"] == "verdict" and line["pair"] == str(pair):
            return Verdict.from_plain(line)
        if line["type"] == "verdict" and Pair.parse(line["pair"]).followup == pair:
            shared.append(line["pair"])
    hint = f"; its follow-up was judged as {', '.join(shared)}" if shared else "; pairs.csv lists them"
    raise UsageError(f"{directory}: no verdict of pair '{pair}'{hint}")
