# SPDX-License-Identifier: Apache-2.0
"""Follow-ups that other processes make are those of this one, and whatever becomes of a process is told, or gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alive import alive

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.process_tree import children_of, processes
from mt_nodes.base.processes import wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message, wires_of_bundle
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.followups import FollowupMaker, FollowupPlan
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.relation import Relation, Suite, load_suite
from mt_nodes.runs.live import followup_workers
from mt_nodes.runs.live.config import AUTO, LiveConfig
from mt_nodes.runs.live.followup_workers import FollowupWorkers
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.radar_model import front_radar

RELATION = """
id: {id}
kind: expected
because: for tests
requires: [{requires}]
mutate: {mutate}
check: {{obstacles_kept: {{}}}}
"""
#: What goes to other processes: states, several sensors, several steps, frames between instants, and no follow-up.
MUTATIONS = {
    "rain": "[{rain: {rain_mm_per_h: 10, ego_speed_mps: 8}}]",
    "steps": "[{points_dropped: {share: 0.2}}, {brightness_changed: {}}, {radar_detections_dropped: {share: 0.3}}]",
    "noise": "[{noise_outside_roi: {points: 100}}]",
    "jpeg": "[{jpeg_compressed: {}}]",
    "clutter": "[{radar_clutter: {}}]",
    "nothing": "[{fog: {visibility_m: 100, ego_speed_mps: 8}}]",
}
LONG_S = 60.0


@pytest.fixture(scope="module")
def instants() -> list[Bundle]:
    """Instants of a LiDAR, a camera and a radar as they come live; all but the first with a frame between."""
    lidar = replace(hdl_64e(), azimuths=300)
    frames = list(generate_drive(3, lidar=lidar, camera=(CameraSensor(96, 64),), radar=front_radar()))
    return [as_live(frame, frames[frame.index - 1]) for frame in frames]


def as_live(frame: Bundle, before: Bundle) -> Bundle:
    """Return a bundle with its serialized messages, and an image of the one before between the two."""
    own = tuple(
        Wire(m.topic, codec.type_of(m), m.stamp_ns, encode_message(m), came_s=1.0 + frame.index) for m in frame.messages
    )
    between = tuple(
        Wire(image.topic, codec.type_of(image), image.stamp_ns + 1, encode_message(image), came_s=0.5 + frame.index)
        for image in before.images
    )
    loose = between if frame.index else ()
    return replace(frame, wires=(*loose, *own), loose=loose)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    place, files = tmp_path_factory.mktemp("relations"), []
    for name, mutate in MUTATIONS.items():
        files.append(place / f"{name}.yaml")
        files[-1].write_text(RELATION.format(id=name, requires="lidar" if name != "jpeg" else "camera", mutate=mutate))
    return load_suite([str(file) for file in files], "points_permuted", None)


@contextmanager
def workers(suite: Suite, count: int, place: Path) -> Iterator[FollowupWorkers]:
    opened = FollowupWorkers(suite, 7, offers(suite), count, place / "console.log")
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


def first(found: FollowupWorkers) -> tuple[Any, FollowupPlan]:
    """Return what is finished first."""
    rows: list[tuple[Any, FollowupPlan]] = []

    def any_finished() -> bool:
        rows.extend(found.finished())
        return bool(rows)

    assert wait_until(any_finished, LONG_S)
    [row] = rows
    return row


def until_free(found: FollowupWorkers) -> None:
    assert wait_until(lambda: not list(found.finished()) and found.free, LONG_S)


def ready(suite: Suite, offer: Offer, bundle: Bundle) -> FollowupMaker:
    """Return what makes follow-ups here, with what an offer begins at a bundle."""
    maker = FollowupMaker(suite, 7)
    maker.begin(offer, bundle)
    return maker


def python_of(found: FollowupWorkers) -> int:
    """Return the process id of the first one, below its supervisor."""
    [pid] = children_of(found.pids[0])
    return pid


def test_follow_ups_of_other_processes_are_the_same_in_every_byte(
    suite: Suite, instants: Sequence[Bundle], tmp_path: Path
) -> None:
    with workers(suite, 2, tmp_path) as found:
        for offer in offers(suite):
            here = ready(suite, offer, instants[0])
            for bundle in instants:
                until_free(found)
                handed = here.handed_over(offer, bundle)
                assert handed is not None, offer.relation.id
                found.begin("ticket", offer, *handed)
                ticket, there = first(found)
                assert ticket == "ticket" and there.offer is offer
                same(there, here(offer, bundle), bundle)
        assert found.lost == 0


def same(there: FollowupPlan, here: FollowupPlan, source: Bundle) -> None:
    assert (there.outcome, there.reason) == (here.outcome, here.reason)
    if here.derived is None or there.derived is None:
        assert here.derived is there.derived is None
        return
    ours, theirs = here.derived.followup, there.derived.followup
    assert sha256_of_followup(theirs) == sha256_of_followup(ours)
    assert theirs.effects.as_plain() == ours.effects.as_plain()
    assert str(there.derived.draws) == str(here.derived.draws)
    for (_, a), (_, b) in zip(ours.bundles, theirs.bundles, strict=True):
        changed = a.changed_topics(source)
        assert b.changed_topics(source) == changed, "a message that was not changed is the source's own object"
        assert [(w.topic, w.cdr) for w in wires_of_bundle(a, changed)] == [
            (w.topic, w.cdr) for w in wires_of_bundle(b, changed)
        ]
        own = set(map(id, source.wires))
        assert [id(w) in own for w in b.wires] == [id(w) in own for w in a.wires]


def test_what_was_looked_at_there_was_looked_at(suite: Suite, instants: Sequence[Bundle], tmp_path: Path) -> None:
    offer = next(offer for offer in offers(suite) if offer.relation.id == "rain")
    here = ready(suite, offer, instants[0])
    [cloud] = instants[1].clouds
    cloud.reading.used = False
    with workers(suite, 1, tmp_path) as found:
        until_free(found)
        handed = here.handed_over(offer, instants[1])
        assert handed is not None
        found.begin(1, offer, *handed)
        first(found)
    assert cloud.reading.used, "the report says what intensities were taken for"


def test_what_begins_or_looks_back_is_made_here(suite: Suite, instants: Sequence[Bundle]) -> None:
    offer = next(offer for offer in offers(suite) if offer.relation.id == "rain")
    maker = FollowupMaker(suite, 7)
    assert maker.handed_over(offer, instants[0]) is None, "its particles are not drawn yet"
    maker.begin(offer, instants[0])
    assert maker.handed_over(offer, instants[1]) is not None


@dataclass(frozen=True)
class BegunAt(Mutation):
    """Draws the number of the bundle at which it has begun."""

    sensors = ("lidar",)

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        return bundle.index

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {"begun_at": state}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        return Followup(((0, bundle.with_clouds([replace(bundle.cloud(), frame_id=f"{draw['begun_at']}")])),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None


def test_what_has_begun_goes_along(instants: Sequence[Bundle]) -> None:
    relation = Relation("begun", "expected", "for tests", (BegunAt(), BegunAt()), None)
    suite = Suite((relation,), relation, relation)
    offer = Offer(relation, (relation,))
    here, there = FollowupMaker(suite, 0), FollowupMaker(suite, 0)
    here.begin(offer, instants[1])
    handed = here.handed_over(offer, instants[2])
    assert handed is not None
    derived = there.of_another(offer, *handed).derived
    assert derived is not None and derived.draws == [{"begun_at": 1}] * 2


@pytest.mark.parametrize("number, how", [(signal.SIGKILL, "was ended by SIGKILL"), (None, "got no further for 0.2 s")])
def test_one_that_dies_or_hangs_is_an_error_and_is_replaced(
    number: int | None,
    how: str,
    suite: Suite,
    instants: Sequence[Bundle],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer = offers(suite)[-1]
    here = ready(suite, offer, instants[0])
    handed = here.handed_over(offer, instants[1])
    assert handed is not None
    with workers(suite, 1, tmp_path) as found:
        until_free(found)
        pid = python_of(found)
        os.kill(pid, signal.SIGSTOP)  # it is at work when it ends
        found.begin(1, offer, *handed)
        if number is None:
            monkeypatch.setattr(followup_workers, "HANG_S", 0.2)
        else:
            os.kill(pid, number)
        ticket, plan = first(found)
        monkeypatch.undo()
        assert ticket == 1 and plan.derived is None and plan.outcome is Outcome.ERROR
        assert how in plan.reason and "another was started" in plan.reason
        assert found.lost == 1 and pid not in processes()
        until_free(found)
        found.begin(2, offer, *handed)
        ticket, plan = first(found)
        assert ticket == 2
        same(plan, here(offer, instants[1]), instants[1])


def test_processes_that_end_again_and_again_end_the_run(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followup_workers, "MODULE", "mt_nodes.no_such_module")
    with (
        workers(suite, 1, tmp_path) as found,
        pytest.raises(InfrastructureError, match="ended with exit code 1") as end,
    ):
        wait_until(lambda: bool(list(found.finished())), LONG_S)
    assert "`workers: 0`" in str(end.value) and "no_such_module" in (tmp_path / "console.log").read_text()


@pytest.mark.alone  # beside other tests no core may be idle for long
def test_they_give_way_as_whoever_starts_them_does(suite: Suite, tmp_path: Path) -> None:
    policies = []

    def start() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with workers(suite, 1, tmp_path) as found:  # not until it is ready: it may get no core for long
            policies.append(os.sched_getscheduler(found.pids[0]))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert policies == [os.SCHED_IDLE]


OPENS = """
import sys, threading
from pathlib import Path
from mt_nodes.engine.judging import offers
from mt_nodes.relations.relation import load_suite
from mt_nodes.runs.live.followup_workers import FollowupWorkers
suite = load_suite(["points_dropped_10_percent"], "points_permuted", None)
found = FollowupWorkers(suite, 0, offers(suite), 2, Path(sys.argv[1]) / "console.log")
while not found.open():
    list(found.finished())
print(*found.pids, flush=True)
threading.Event().wait()
"""


def test_nothing_is_left_of_them_when_the_suite_is_killed(tmp_path: Path) -> None:
    suite = subprocess.Popen([sys.executable, "-c", OPENS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert suite.stdout is not None
    supervisors = [int(word) for word in suite.stdout.readline().split()]
    pids = [*supervisors, *(pid for each in supervisors for pid in children_of(each))]
    assert len(pids) >= 3
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    assert "/memfd:" in maps and "/dev/shm" not in maps, "shared memory without a name goes with who has it"
    suite.kill()
    suite.wait()
    assert wait_until(lambda: not any(map(alive, pids)), LONG_S)


def test_how_many_there_are() -> None:
    assert [LiveConfig(workers=AUTO).workers_on(cores) for cores in (1, 2, 3, 4, 12, 64)] == [0, 0, 1, 2, 8, 8]
    assert LiveConfig().workers_on(8) == 0 and LiveConfig(workers=3).workers_on(2) == 3
    assert LiveConfig(mode="alternate", workers=3).workers_on(8) == 0, "there, each follow-up waits for an answer"
