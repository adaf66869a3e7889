# SPDX-License-Identifier: Apache-2.0
"""Offers a relay what may take the place of live sensor messages; nothing that is not proven, nothing late on purpose.

Taps the raw topics best effort with depth 1. Each follow-up is proven before it is offered. Its ledger is
``offered.jsonl``: what was offered in place of which stamp, or why nothing was.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mt_nodes.base import plugins
from mt_nodes.base.errors import MtError, NotApplicable, PluginError
from mt_nodes.base.jsonl import LineFile
from mt_nodes.base.processes import Flag, flag_of_signals
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.nodes.frame_taps import FrameTaps
from mt_nodes.nodes.live_inputs import InstantReader, LiveInputs
from mt_nodes.nodes.node_main import quick_executor
from mt_nodes.nodes.spinning_context import lone_node, quiet_node
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.relations.relation import load_relation, refuse_baseline
from mt_nodes.runs.vehicle.caps import capped
from mt_nodes.runs.vehicle.inline import InlineConfig, load_inline_config
from mt_nodes.runs.vehicle.offers import Offers

NODE = "mt_inline_mutator"
LEDGER = "offered.jsonl"
_LOOK_EVERY_S = 0.1


class InlineMutator:
    """Makes follow-ups of what it taps and offers them."""

    def __init__(self, config: InlineConfig, frames: FrameTaps, offers: Offers, ledger: LineFile) -> None:
        self._offers, self._ledger = offers, ledger
        self._relation = load_relation(config.relation)
        refuse_baseline(self._relation, "inline")
        self._pipeline = MutationPipeline(
            self._relation.mutate, config.seed, self._relation.id, requires=self._relation.requires
        )
        self._numbers = {between.raw: number for number, between in enumerate(config.topics)}
        self._reader = InstantReader(frames.at, frames.track)
        self._count = 0
        self.failure: MtError | None = None

    def received(self, wires: Sequence[Wire]) -> None:
        """Take in the messages of one instant, offer, then write down what was."""
        index, self._count = self._count, self._count + 1
        try:
            bundle = self._pipeline.meet(self._reader.read(index, wires))
            self._answer(bundle)
            self._pipeline.foresee(bundle.episode, self._count, bundle)
        except MtError as error:
            self.failure = error

    def _answer(self, bundle: Bundle) -> None:
        try:
            derived = self._pipeline.derive(bundle)
            refused = _refused(bundle, derived)
            if not refused:
                self._offer(bundle, derived)
                self._tell(bundle, sha256=sha256_of_followup(derived.followup), effects=derived.effects.as_plain())
                return
            self._tell(bundle, outcome=Outcome.INVALID.value, reason=refused)
        except NotApplicable as why:
            self._tell(bundle, outcome=Outcome.NOT_APPLICABLE.value, reason=str(why))
        except PluginError as error:
            self._tell(bundle, outcome=Outcome.ERROR.value, reason=str(error))

    def _offer(self, bundle: Bundle, derived: DerivedFollowup) -> None:
        (_, sent) = derived.followup.bundles[0]
        changed = sent.changed_topics(bundle)
        for wire in wires_of_bundle(sent, changed):
            if wire.topic in changed:
                self._offers.offer(self._numbers[wire.topic], wire.stamp_ns, wire.cdr)

    def _tell(self, bundle: Bundle, **about: object) -> None:
        self._ledger.append(
            {"stamp_ns": bundle.stamp_ns, "relation": self._relation.id, "bundle": bundle.index, **about}
        )


def _refused(bundle: Bundle, derived: DerivedFollowup) -> str:
    """Say why a follow-up cannot take the place of its source, empty where it can."""
    if derived.broken:
        return derived.broken
    parts = derived.followup.bundles
    if len(parts) != 1 or parts[0][0] != 0:
        return "the follow-up drops, repeats or delays messages; a relay replaces one by one"
    moved = parts[0][1].stamp_ns != bundle.stamp_ns
    return "the follow-up bears another stamp; a relay finds its original by it" if moved else ""


def main(args: list[str] | None = None) -> None:
    """Offer until a signal comes."""
    parser = argparse.ArgumentParser(prog="inline_mutator", description="Started by `mt inline`.")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--offers", type=Path, required=True, help="socket of the relay")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(args)
    ended = flag_of_signals()
    try:
        _carry_out(given, ended)
    except MtError as error:
        print(f"inline_mutator: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _carry_out(given: argparse.Namespace, ended: Flag) -> None:
    config = load_inline_config(given.config)
    for directory in config.plugins:
        plugins.add_directory(Path(directory))
    with (
        lone_node(NODE, quiet_node, quick_executor) as (node, executor),
        capped(config.caps) as held,
        closing(LineFile(given.out / LEDGER)) as ledger,
        closing(Offers(given.offers)) as offers,
    ):
        ledger.append({"type": "caps", "how": dict(held.how), "lacking": dict(held.lacking)})
        frames = FrameTaps(node, load_transforms(Path(config.transforms)) if config.transforms else TransformTree())
        mutator = InlineMutator(config, frames, offers, ledger)
        inputs = LiveInputs(node, [row.raw for row in config.topics], round(config.sync_s * 1e9), mutator.received)
        node.create_timer(_LOOK_EVERY_S, inputs.look)
        gc.freeze()
        while not ended.is_set() and mutator.failure is None:
            executor.spin_once(timeout_sec=0.2)
        if mutator.failure is not None:
            raise mutator.failure


if __name__ == "__main__":
    main()
