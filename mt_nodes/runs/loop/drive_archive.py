# SPDX-License-Identifier: Apache-2.0
"""Keeps drives: traces, ledger lines, an MCAP file of each episode, and what sensors saw in violated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.params import plain
from mt_nodes.base.plugins import name_of
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.recorder import Recorder
from mt_nodes.relations.world_changes.change_application import WHOLE, ChangedWorld
from mt_nodes.runs.loop.episode import Player, Side, replay_observations
from mt_nodes.runs.loop.episode_bag import write_drives
from mt_nodes.world.drive.trace_file import FOLDER, save_trace, sha256_of_trace, trace_file

if TYPE_CHECKING:
    from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun

#: Instants of a violated drive of which evidence holds what sensors saw, evenly over it: all of it would be gigabytes.
LOOKS = 12
MakePlayer = Callable[..., Player]


@dataclass(frozen=True, eq=False)
class DrivenPair:
    """A pair of drives and what was judged of it.

    ``planned``: the episode. ``offer``: whose follow-up it is. ``changed_world``: what the follow-up drove through.
    """

    planned: PlannedEpisode
    offer: Offer
    changed_world: ChangedWorld
    source: Side
    followup: Side
    verdicts: Sequence[Verdict]

    @property
    def name(self) -> Pair:
        """The pair, as the ledger knows it."""
        return Pair(self.planned.number, None, self.offer.relation.id, str(self.offer.draw))


class DriveArchive:
    """Writes what a run leaves of its drives.

    ``run``: whose directory it is. ``recorder``: takes verdicts and lines. ``make``: returns what plays an episode.
    """

    def __init__(self, run: ScenarioRun, recorder: Recorder, make: MakePlayer) -> None:
        self._run, self._recorder, self._make = run, recorder, make
        self._written: set[str] = set()

    def keep(self, pair: DrivenPair) -> list[Verdict]:
        """Keep a pair of drives and journal its verdicts; return those that are new."""
        source_sha256, followup_sha256 = (self._saved(side) for side in (pair.source, pair.followup))
        self._recorder.episode(pair.name, pair.changed_world.draws, followup_sha256, _about(pair, source_sha256))

        def write(path: Path, violated: Pair) -> None:
            sides = {"source": (pair.source, None), "followup": (pair.followup, pair.offer)}
            observations = {
                f"/mt/{arm}": (side, self._observations(pair.planned, side, offer))
                for arm, (side, offer) in sides.items()
            }
            write_drives(path, str(violated), observations)

        return self._recorder.drives(pair.verdicts, pair.followup.played.answer_ms, write)

    def _saved(self, side: Side) -> str:
        """Keep a trace, and the drive as messages; return its SHA-256."""
        trace = side.played.driven.trace
        if side.name not in self._written:
            self._written.add(side.name)
            save_trace(trace_file(self._run.out, side.name), trace)
            path = self._run.out / FOLDER / f"{side.name}.mcap"
            self._recorder.later(write_drives, path, side.name, {"": (side, ())})
        return sha256_of_trace(trace)

    def _observations(self, planned: PlannedEpisode, side: Side, offer: Offer | None) -> list[Bundle]:
        if self._run.request.simulator:
            return []  # what was seen is made by driving again, and our world is not the simulator's
        rows = len(side.played.commands)
        rows_to_show = {round(i * (rows - 1) / (LOOKS - 1)) for i in range(LOOKS)}
        player = self._make(planned, side.setting, None, offer)
        return replay_observations(player, side.played.commands, rows_to_show)


def _about(pair: DrivenPair, source_sha256: str) -> dict[str, Any]:
    relation, changed_world, source, followup = pair.offer.relation, pair.changed_world, pair.source, pair.followup
    sent = followup.played.sent_sha256
    return {
        "scenario": plain(pair.planned.setting.scenario),
        "changes": [{"name": name_of(type(c)), "params": plain(c)} for c in relation.scenario],
        **({"back": list(changed_world.back)} if changed_world.back else {}),
        **({"window": list(changed_world.window)} if changed_world.window != WHOLE else {}),
        "effects": changed_world.effects.as_plain(),
        "mutations": [{"name": name_of(type(m)), "params": plain(m)} for m in relation.mutate],
        **({"sent_sha256": sent} if sent else {}),
        "source": {"trace": f"{FOLDER}/{source.name}.npz", "ended": source.played.ended, "sha256": source_sha256},
        "trace": f"{FOLDER}/{followup.name}.npz",
        "ended": followup.played.ended,
    }
