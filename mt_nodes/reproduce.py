# SPDX-License-Identifier: Apache-2.0
"""One pair of a finished run once more: its follow-up made again and proved, its request to be judged anew."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.bags import BagSource
from mt_nodes.directories import unused
from mt_nodes.engine import Offer
from mt_nodes.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.evidence import evidence_name
from mt_nodes.frames import Bundle
from mt_nodes.journal import read_journal
from mt_nodes.ledger import baseline_of, find_followup, find_followups, sha256_of_followup
from mt_nodes.params import plain
from mt_nodes.pipeline import Derived, MutationPipeline
from mt_nodes.plan import ReplayRequest
from mt_nodes.recorded import RecordedDraws
from mt_nodes.relations import Relation, load_relation
from mt_nodes.run_record import read_record, versions
from mt_nodes.runs import Run
from mt_nodes.verdict import Pair, Verdict

#: What must be alike for two judgements to be the same.
JUDGED = ("outcome", "measured", "bound", "margin", "unit", "lost", "gained", "reason", "detail")


@dataclass(frozen=True)
class Finished:
    """A pair as a finished run left it.

    Attributes:
        directory: results of the run. about: its ``run.json``.
        pair: which one. verdict: how it ended. sha256: of its follow-up, by the ledger; of a pair that stands for an
            episode, of all its follow-ups' in a row.
        baseline_sha256: of what the source arm was given in place of the source; empty where that was the source.
    """

    directory: Path
    about: dict[str, Any]
    pair: Pair
    verdict: Verdict
    sha256: str
    baseline_sha256: str = ""

    @classmethod
    def find(cls, directory: Path, text: str) -> Finished:
        """Look a pair up.

        Raises:
            UsageError: there is no such run, pair or follow-up.
            InfrastructureError: what there is is damaged.
        """
        pair, about = Pair.parse(text), read_record(directory)
        verdict = _verdict(directory, pair)
        lines = [find_followup(directory, pair)] if pair.bundle is not None else find_followups(directory, pair)
        sha256, milder = _joined([str(line["sha256"]) for line in lines]), [baseline_of(line) for line in lines]
        return cls(directory, about, pair, verdict, sha256, _joined([str(m["sha256"]) for m in milder if m]))

    def request(self, transport: str = "", bag: str = "") -> ReplayRequest:
        """Return the request of the run, restricted to this pair.

        Files that are not found from here are looked for from where the run was started. It goes in lockstep, which
        time has no part in.

        Args:
            transport: another one than the run's.
            bag: where the pair's bag is now.

        Raises:
            UsageError: the bag or the relation is not there.
        """
        if "bags" not in self.about["request"]:
            kept = self.directory / "evidence" / evidence_name(self.pair)
            raise UsageError(
                f"{self.directory}: got a run of `mt live`, whose input is gone; expected one of `mt replay`. Source, "
                f"follow-up and both answers of a violated pair are in {kept}"
            )
        asked = ReplayRequest.from_plain(self.about["request"])
        bags = [self._located(name) for name in asked.bags]
        bags[self.pair.episode] = bag or bags[self.pair.episode]
        if not Path(bags[self.pair.episode]).exists():
            raise UsageError(f"the run's bag {bags[self.pair.episode]} is not there; say where it is now with --bag")
        return dataclasses.replace(
            asked,
            bags=tuple(bags),
            relations=(self._relation(asked),),
            stack=self._located(asked.stack),
            transforms=self._located(asked.transforms),
            transport=transport or asked.transport,
            pace="lockstep",
            waivers="",
            only=str(self.pair),
            recorded=str(self.directory.resolve()),
        )

    def new_directory(self) -> Path:
        """Return where the results of a reproduction go when nothing else is said."""
        return unused(self.directory / "reproduced" / str(self.pair).replace("/", "_"))

    def _relation(self, asked: ReplayRequest) -> str:
        """Return the name, or file, of the relation whose check judged the pair."""
        names = [self._located(name) for name in asked.relations]
        for name in names:
            if load_relation(name).id == self.pair.judged_for:
                return name
        raise UsageError(
            f"none of the run's relations ({', '.join(names)}) has the id '{self.pair.judged_for}' any more"
        )

    def _located(self, name: str) -> str:
        started_in = Path(self.about.get("directory", "."))
        moved = started_in / name
        return str(moved) if name and not Path(name).exists() and moved.exists() else name


@dataclass(frozen=True)
class Proof:
    """Whether a follow-up could be made again bit for bit; a SHA-256 is None when none was made, ``why`` tells.

    Attributes:
        expected: SHA-256 by the ledger.
        from_draws, from_seed: of what the recorded draws, and new draws from the seed, came to.
        why: what went wrong, as far as it can be told.
        before: follow-ups that a stack which remembers is given before, and how many of them could not be made again.
        baseline: the same of what the source arm was given in place of the source, None where that was the source.
    """

    expected: str
    from_draws: str | None
    from_seed: str | None
    why: tuple[str, ...] = ()
    before: tuple[int, int] = (0, 0)
    baseline: Proof | None = None

    @property
    def same(self) -> bool:
        """Whether everything was made again bit for bit."""
        made = self.from_draws == self.from_seed == self.expected and not self.before[1]
        return made and (self.baseline is None or self.baseline.same)


def prove(run: Run, finished: Finished) -> Proof:
    """Make the follow-up again, from the recorded draws and from the seed.

    Args:
        run: made of :meth:`Finished.request`.
        finished: what it must come to.

    Raises:
        UsageError: the bag does not reach so far.
        InfrastructureError: the bag or a file of draws is damaged.
    """
    (source,), (offer,) = run.sources, run.offers
    recorded = RecordedDraws(finished.directory, offer.relation)
    relation = offer.relation
    seeded = MutationPipeline(relation.mutate, run.request.seed, relation.id, relation.baseline)
    if finished.pair.bundle is None:
        return _prove_episode(source, offer, finished, recorded, seeded)
    known, wrong = 0, 0
    for bundle in _up_to(source, finished.pair):
        if bundle.index == finished.pair.bundle:
            break
        seeded.meet(bundle)
        recorded.meet(bundle)
        if not seeded.begun(bundle.episode):
            _from_seed(seeded, offer.draw, bundle)
        pair = offer.followup_pair(bundle)
        if not run.stack.stateless and (line := recorded.lines.get(str(pair))):
            was = (line["sha256"], (baseline_of(line) or {}).get("sha256"))
            known, wrong = known + 1, wrong + (_hashes(_from_draws(recorded, pair, bundle)[0]) != was)
    made_draws, why_draws = _from_draws(recorded, finished.pair, bundle)
    made_seed, why_seed = _from_seed(seeded, offer.draw, bundle)
    why = [w for w in (_other_stamp(bundle, finished, source), why_draws, why_seed) if w]
    (from_draws, milder_draws), (from_seed, milder_seed) = _hashes(made_draws), _hashes(made_seed)
    milder = finished.baseline_sha256
    baseline = Proof(milder, milder_draws, milder_seed) if milder else None
    return Proof(finished.sha256, from_draws, from_seed, tuple(why), (known, wrong), baseline)


def _prove_episode(
    source: BagSource, offer: Offer, finished: Finished, recorded: RecordedDraws, seeded: MutationPipeline
) -> Proof:
    """Make all that was sent in an episode again; its hash is that of all their hashes, in order."""
    made: list[tuple[tuple[str | None, str | None], tuple[str | None, str | None]]] = []
    why: list[str] = []
    for number, bundle in enumerate(source):
        why += [_other_stamp(bundle, finished, source)] if number == 0 else []
        pair = offer.followup_pair(bundle)
        if str(pair) not in recorded.lines:
            recorded.meet(bundle)
            seeded.meet(bundle)
            if not seeded.begun(bundle.episode):
                _from_seed(seeded, offer.draw, bundle)
            continue
        from_draws, why_draws = _from_draws(recorded, pair, bundle)
        from_seed, why_seed = _from_seed(seeded, offer.draw, bundle)
        made.append((_hashes(from_draws), _hashes(from_seed)))
        why += [f"bundle {bundle.index}: {w}" for w in (why_draws, why_seed) if w]
    (draws, milder_draws), (seed, milder_seed) = (
        [_joined([str(pair[how][part]) for pair in made]) for part in (0, 1)] for how in (0, 1)
    )
    milder = finished.baseline_sha256
    baseline = Proof(milder, milder_draws, milder_seed) if milder else None
    return Proof(finished.sha256, draws, seed, tuple(filter(None, why)), (0, 0), baseline)


def _joined(hashes: Sequence[str]) -> str:
    """Return one hash as it is, of several the SHA-256 of their texts in a row, empty of none."""
    if len(hashes) <= 1:
        return "".join(hashes)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def changed_since(run: Run, finished: Finished) -> list[str]:
    """Say what is not as it was when the run was made: versions, machine, relation, stack."""
    import platform

    was, now = finished.about.get("versions", {}), versions()
    notes = [
        f"{name}: {was.get(name, '(not there)')} in the run, {now.get(name, '(not there)')} now"
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    cpu = finished.about.get("machine", {}).get("cpu", platform.machine())
    notes += [f"CPU type: {cpu} in the run, {platform.machine()} now"] if cpu != platform.machine() else []
    if finished.about["request"]["pace"] != run.request.pace:
        notes.append(f"pace: {finished.about['request']['pace']} in the run, {run.request.pace} now")
    recorded = {r["id"]: r for r in finished.about["relations"]}
    for relation in _relations(run):
        if edited := _edited(recorded.get(relation.id, {}), relation.as_plain()):
            notes.append(f"relation {relation.id} has been edited: {edited}")
    stack_file = finished.directory / "stack.yaml"
    recorded_stack = yaml.safe_load(stack_file.read_text(encoding="utf-8")) if stack_file.exists() else {}
    if edited := _edited(recorded_stack, plain(run.stack)):
        notes.append(f"stack {run.stack.name} has been edited: {edited} (it was {stack_file})")
    return notes


def judged_again(out: Path, pair: Pair) -> Verdict | None:
    """Return the verdict of a reproduction, None when it ended before."""
    lines = read_journal(out / "result.jsonl")
    return next((Verdict.from_plain(line) for line in lines if line.get("pair") == str(pair)), None)


def differences(recorded: Verdict, now: Verdict) -> list[str]:
    """Return what of two judgements differs, by name."""
    was, is_now = _json(recorded.as_plain()), _json(now.as_plain())
    return [name for name in JUDGED if was.get(name) != is_now.get(name)]


def _verdict(directory: Path, pair: Pair) -> Verdict:
    shared = []
    for line in read_journal(directory / "result.jsonl"):
        if line["type"] == "verdict" and line["pair"] == str(pair):
            return Verdict.from_plain(line)
        if line["type"] == "verdict" and Pair.parse(line["pair"]).followup == pair:
            shared.append(line["pair"])
    hint = f"; its follow-up was judged as {', '.join(shared)}" if shared else "; pairs.csv lists them"
    raise UsageError(f"{directory}: no verdict of pair '{pair}'{hint}")


def _up_to(source: BagSource, pair: Pair) -> Iterator[Bundle]:
    """Yield the bundles up to and with that of a pair."""
    count = 0
    for bundle in source:
        count += 1
        yield bundle
        if bundle.index == pair.bundle:
            return
    raise UsageError(f"{source.reader.path}: has {count} bundles, pair '{pair}' needs more; is it the bag of the run?")


def _hashes(made: Derived | None) -> tuple[str | None, str | None]:
    """Return the SHA-256 of a follow-up and of its baseline, None for what there is none of."""
    follow, milder = (None if d is None else sha256_of_followup(d.followup) for d in (made, made and made.baseline))
    return follow, milder


def _from_draws(recorded: RecordedDraws, pair: Pair, bundle: Bundle) -> tuple[Derived | None, str]:
    try:
        return recorded.again(pair, bundle), ""
    except InfrastructureError as error:
        return None, str(error)


def _from_seed(seeded: MutationPipeline, draw: int, bundle: Bundle) -> tuple[Derived | None, str]:
    try:
        derived = seeded.derive(bundle, draw)
    except NotApplicable as why:
        return None, f"no follow-up from the seed: {why}"
    return derived, derived.broken or ""


def _other_stamp(bundle: Bundle, finished: Finished, source: BagSource) -> str:
    was = finished.verdict.stamp_ns
    if bundle.stamp_ns == was:
        return ""
    where = f"{source.reader.path}: bundle {bundle.index}"
    return f"{where} has the stamp {bundle.stamp_ns}, had {was} in the run: it is another bag or was changed"


def _relations(run: Run) -> list[Relation]:
    return list({r.id: r for r in (run.offers[0].relation, *run.suite.relations)}.values())


def _edited(was: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the keys that differ, by name; a key that the run did not know is no difference."""
    plain_now = _json(now)
    return ", ".join(key for key in was if was[key] != plain_now.get(key))


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))
