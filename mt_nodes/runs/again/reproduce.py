# SPDX-License-Identifier: Apache-2.0
"""One pair of a finished replay once more: its follow-up made again and proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.base.wording import counted
from mt_nodes.data.bags.bundles import Source
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.followups import RecordedDraws
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.ledger import baseline_of
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.recorded_pair import RecordedPair, combined_sha256
from mt_nodes.engine.reduction.reduction import reducing
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.runs.replay.replay_run import Run


@dataclass(frozen=True)
class Proof:
    """Whether a follow-up could be made again bit for bit; a SHA-256 is None when none was made, ``why`` tells.

    Attributes:
        expected: SHA-256 by the ledger.
        from_draws, from_seed: of what the recorded draws, and new draws from the seed, came to.
        drawn_anew: whether anything could be drawn from the seed: that needs the episode from its beginning.
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
    drawn_anew: bool = True

    @property
    def same(self) -> bool:
        """Whether everything was made again bit for bit."""
        seed = not self.drawn_anew or self.from_seed == self.expected
        alike = self.from_draws == self.expected and seed and not self.before[1]
        return alike and (self.baseline is None or self.baseline.same)


def prove(run: Run, finished: RecordedPair) -> Proof:
    """Make the follow-up again, from the recorded draws and from the seed.

    ``run``: made of :meth:`RecordedPair.request`. ``finished``: what it must come to.
    Raises UsageError: the bag does not reach so far. InfrastructureError: the bag or a file of draws is damaged.
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
        first = run.schedule.first(offer, bundle)
        if run.schedule.wants(offer, bundle) and not seeded.begun(bundle, first):
            _from_seed(seeded, offer.draw, bundle, first)
        pair = offer.followup_pair(bundle)
        if not run.stack.stateless and (line := recorded.lines.get(str(pair))):
            was = (line["sha256"], (baseline_of(line) or {}).get("sha256"))
            known, wrong = known + 1, wrong + (_hashes(_from_draws(recorded, pair, bundle)[0]) != was)
    made_draws, why_draws = _from_draws(recorded, finished.pair, bundle)
    made_seed, why_seed = _from_seed(seeded, offer.draw, bundle, run.schedule.first(offer, bundle))
    reduced = reducing(run.request)
    made_draws, made_seed = (derived and reduced(derived, bundle) for derived in (made_draws, made_seed))
    why = [w for w in (_other_stamp(bundle, finished, source), why_draws, why_seed) if w]
    (from_draws, milder_draws), (from_seed, milder_seed) = _hashes(made_draws), _hashes(made_seed)
    milder = finished.baseline_sha256
    baseline = Proof(milder, milder_draws, milder_seed) if milder else None
    return Proof(finished.sha256, from_draws, from_seed, tuple(why), (known, wrong), baseline)


def _prove_episode(
    source: Source, offer: Offer, finished: RecordedPair, recorded: RecordedDraws, seeded: MutationPipeline
) -> Proof:
    """Make all that was sent in an episode again; its hash is that of all their hashes, in order."""
    hashes: list[tuple[tuple[str | None, str | None], tuple[str | None, str | None]]] = []
    why: list[str] = []
    for number, bundle in enumerate(source):
        why += [_other_stamp(bundle, finished, source)] if number == 0 else []
        pair = offer.followup_pair(bundle)
        if str(pair) not in recorded.lines:
            recorded.meet(bundle)
            seeded.meet(bundle)
            if not seeded.begun(bundle):
                _from_seed(seeded, offer.draw, bundle)
            continue
        from_draws, why_draws = _from_draws(recorded, pair, bundle)
        from_seed, why_seed = _from_seed(seeded, offer.draw, bundle)
        hashes.append((_hashes(from_draws), _hashes(from_seed)))
        why += [f"bundle {bundle.index}: {w}" for w in (why_draws, why_seed) if w]
    (draws, milder_draws), (seed, milder_seed) = (
        [combined_sha256([str(pair[how][part]) for pair in hashes]) for part in (0, 1)] for how in (0, 1)
    )
    milder = finished.baseline_sha256
    baseline = Proof(milder, milder_draws, milder_seed) if milder else None
    return Proof(finished.sha256, draws, seed, tuple(filter(None, why)), (0, 0), baseline)


def _up_to(source: Source, pair: Pair) -> Iterator[Bundle]:
    """Yield the bundles up to and with that of a pair."""
    count = 0
    for bundle in source:
        count += 1
        yield bundle
        if bundle.index == pair.bundle:
            return
    raise UsageError(
        f"{source.reader.path}: has {counted(count, 'bundle')}, pair '{pair}' needs more; is it the bag of the run?"
    )


def _hashes(derived: DerivedFollowup | None) -> tuple[str | None, str | None]:
    """Return the SHA-256 of a follow-up and of its baseline, None for what there is none of."""
    both = derived, derived and derived.baseline
    follow, milder = (None if one is None else sha256_of_followup(one.followup) for one in both)
    return follow, milder


def _from_draws(recorded: RecordedDraws, pair: Pair, bundle: Bundle) -> tuple[DerivedFollowup | None, str]:
    try:
        return recorded.rebuild(pair, bundle), ""
    except InfrastructureError as error:
        return None, str(error)


def _from_seed(
    seeded: MutationPipeline, draw: int, bundle: Bundle, first: int | None = None
) -> tuple[DerivedFollowup | None, str]:
    try:
        derived = seeded.derive(bundle, draw, first)
    except NotApplicable as why:
        return None, f"no follow-up from the seed: {why}"
    return derived, derived.broken or ""


def _other_stamp(bundle: Bundle, finished: RecordedPair, source: Source) -> str:
    was = finished.verdict.stamp_ns
    if bundle.stamp_ns == was:
        return ""
    where = f"{source.reader.path}: bundle {bundle.index}"
    return f"{where} has the stamp {bundle.stamp_ns}, had {was} in the run: it is another bag or was changed"
