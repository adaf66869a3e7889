# SPDX-License-Identifier: Apache-2.0
"""What the mutator of `mt inline` offers in the place of a live message, and what it never does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mt_nodes.base.jsonl import LineFile
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transform_buffer import TransformBuffer
from mt_nodes.nodes.inline_mutator import InlineMutator
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.runs.vehicle.inline import Between, InlineConfig
from mt_nodes.world.scene.drive import generate_drive


class Offered:
    """A mutator, what it offered, and its ledger."""

    def __init__(self, place: Path, ledger: LineFile) -> None:
        self.bundle = next(iter(generate_drive(1)))
        self.offers: list[tuple[int, int, bytes]] = []
        config = InlineConfig(topics=(Between(self.bundle.cloud().topic, "/points"),))
        frames = SimpleNamespace(at=TransformBuffer(self.bundle.transforms).at, track=EgoTrack())
        self.mutator = InlineMutator(config, frames, self, ledger)  # type: ignore[arg-type]
        self._ledger = place
        self.made: list[DerivedFollowup] = []
        self._derive = self.mutator._pipeline.derive

    def offer(self, number: int, stamp_ns: int, data: bytes) -> None:
        self.offers.append((number, stamp_ns, data))

    def receive(self, change: Callable[[DerivedFollowup], DerivedFollowup] = lambda derived: derived) -> dict[str, Any]:
        """Let it have a bundle, and its follow-up be changed; return what it wrote down."""

        def derive(bundle: Bundle) -> DerivedFollowup:
            self.made.append(change(self._derive(bundle)))
            return self.made[-1]

        self.mutator._pipeline.derive = derive  # type: ignore[method-assign, assignment]
        topics = frozenset({self.bundle.cloud().topic})
        self.mutator.received(wires_of_bundle(self.bundle, topics))
        assert self.mutator.failure is None
        return dict(json.loads(self._ledger.read_text().splitlines()[-1]))


@pytest.fixture
def offered(tmp_path: Path) -> Iterator[Offered]:
    with closing(LineFile(tmp_path / "offered.jsonl")) as ledger:
        yield Offered(tmp_path / "offered.jsonl", ledger)


def parts(*of: tuple[int, int]) -> Callable[[DerivedFollowup], DerivedFollowup]:
    """Make a follow-up of parts: delay of each, and by how much its stamp is another, ns."""

    def changed(derived: DerivedFollowup) -> DerivedFollowup:
        (_, bundle) = derived.followup.bundles[0]
        bundles = [(delay_ns, replace(bundle, stamp_ns=bundle.stamp_ns + moved_ns)) for delay_ns, moved_ns in of]
        return replace(derived, followup=Followup(bundles, derived.followup.effects))

    return changed


def test_a_follow_up_that_is_proven_is_offered_in_the_place_of_its_source(offered: Offered) -> None:
    row = offered.receive()
    [(number, stamp_ns, data)] = offered.offers
    assert (number, stamp_ns) == (0, offered.bundle.stamp_ns) == (0, codec.header_stamp_ns(data))
    assert len(data) > len(codec.encode_cloud(offered.bundle.cloud())), "1,000 points more"
    assert len(row["sha256"]) == 64 and "outcome" not in row


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda derived: replace(derived, broken="a point was moved"), "a point was moved"),
        (parts((1, 0)), "drops, repeats or delays"),
        (parts((0, 0), (0, 0)), "drops, repeats or delays"),
        (parts(), "drops, repeats or delays"),
        (parts((0, 1)), "bears another stamp"),
    ],
    ids=["not proven", "delayed", "repeated", "dropped", "another stamp"],
)
def test_what_cannot_take_the_place_of_its_source_is_not_offered(
    offered: Offered, change: Callable[[DerivedFollowup], DerivedFollowup], says: str
) -> None:
    row = offered.receive(change)
    assert not offered.offers
    assert row["outcome"] == "INVALID" and says in row["reason"]
