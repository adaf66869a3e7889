# SPDX-License-Identifier: Apache-2.0
"""Clips that a video model invents from one edited picture: how they are made, and that no pair of them is judged.

The models are stand-ins here; test/extras runs a Stable Video Diffusion of random weights.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from fake_arms import relation
from made_images import street_in

from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.cli.main import main as mt
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.engine.pair_judge import INVENTED, MemoryGuard
from mt_nodes.engine.series import Series
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.command_series_checks import KeepsCurrentThroughout
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.runs.models import invented_clips
from mt_nodes.runs.models.invented_clips import ClipInventor
from mt_nodes.world.camera.diffusion import EditCache
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

BUNDLE = street_in("bgr8")
ANSWER = Answer(AnswerStatus.ANSWERED, Output(control=Control(0, 0.0, 5.0)))
ONE, INSTANT = Effects(invented="cam: invented"), Effects()


@dataclass(frozen=True)
class Always(Check):
    """Violates whatever it is given."""

    needs = ("control",)

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        return Judgement(Outcome.VIOLATED, margin=-1)


def offer(check: Any) -> Offer:
    made = relation("r", check=check)
    return Offer(made, (made,))


def sent(effects: Effects, by: Offer) -> FollowupPlan:
    return FollowupPlan(by, DerivedFollowup(Followup(((0, BUNDLE),), effects), []))


@dataclass
class Models:
    """An editor that paints grey, and a model that goes on ever darker from ``off`` of what it is given."""

    off: int = 0
    asked: tuple[Any, ...] = ()

    def edit(self, request: Any, rgb: Any) -> Any:
        return np.full_like(rgb, 200)

    def invent(self, request: Any, first: Any, length: int, fps: int, motion: int | None) -> Any:
        self.asked = (request.model, length, fps, motion)
        return [first - np.uint8(self.off) - np.uint8(10 * number) for number in range(length)]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    stand_ins = Models()
    monkeypatch.setattr(invented_clips, "edit", stand_ins.edit)
    monkeypatch.setattr(invented_clips, "invent_clip", stand_ins.invent)
    return stand_ins


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "bag"
    write_bundles(path, generate_drive(5, camera=CameraSensor(width=64, height=48)))
    return path


def instructed(cache: Path, **more: Any) -> ImageInstructed:
    return ImageInstructed(model="pix2pix", video="svd", cache=str(cache), **more)


def pictures(bag: Path, mutation: ImageInstructed) -> Iterator[tuple[int, str]]:
    """The grey of each picture that a relation would show, and what is said of it."""
    pipeline = MutationPipeline([mutation], 7, "edited")
    with BagSource(bag, {}) as source:
        for bundle in source:
            made = pipeline.derive(bundle)
            assert made.broken is None
            yield int(np.median(np.asarray(made.followup.first.images[0].pixels))), made.effects.invented


def test_a_clip_begins_with_the_edit_and_what_follows_is_called_invented(
    models: Models, bag: Path, tmp_path: Path
) -> None:
    mutation = instructed(tmp_path)
    assert list(ClipInventor(mutation, 8, 3).edit(bag, {})) == [3, 5]
    assert models.asked[:3] == ("svd", 8, 10), "the last clip has its whole length, the recording ten pictures a second"
    motion = models.asked[3]
    assert motion is not None and 100 < motion < 255, "the ego drives"
    shown = list(pictures(bag, mutation))
    assert [grey for grey, _ in shown] == [200, 190, 180, 200, 190]
    assert [bool(invented) for _, invented in shown] == [False, True, True, False, True]
    assert "not this instant" in shown[1][1]


def test_a_model_that_does_not_go_on_from_the_edit_is_refused(models: Models, bag: Path, tmp_path: Path) -> None:
    models.off = 30
    with pytest.raises(UsageError, match=r"differs from the edited one by 0\.118 of full scale.*at most 0\.1"):
        list(ClipInventor(instructed(tmp_path), 8, 3).edit(bag, {}))
    with pytest.raises(NotApplicable, match="no clip with this picture"):
        list(pictures(bag, instructed(tmp_path)))


def test_other_lengths_replace_what_a_picture_was_before(models: Models, bag: Path, tmp_path: Path) -> None:
    mutation = instructed(tmp_path)
    for kept, invented in ((2, [False, True, False, True, False]), (5, [False, True, True, True, True])):
        list(ClipInventor(mutation, 5, kept).edit(bag, {}))
        assert [bool(why) for _, why in pictures(bag, mutation)] == invented


def test_a_picture_that_the_recording_repeats_stays_the_edited_one(models: Models, tmp_path: Path) -> None:
    drive = list(generate_drive(3, camera=CameraSensor(width=64, height=48)))
    pixels = drive[0].images[0].pixels
    still = (replace(b, images=(replace(b.images[0], pixels=pixels),)) for b in drive)
    write_bundles(tmp_path / "bag", still)
    mutation = instructed(tmp_path / "cache")
    list(ClipInventor(mutation, 3, 3).edit(tmp_path / "bag", {}))
    assert list(pictures(tmp_path / "bag", mutation)) == [(200, "")] * 3


def test_a_single_edit_is_no_clip(models: Models, bag: Path, tmp_path: Path) -> None:
    list(ClipInventor(instructed(tmp_path), 5, 5).edit(bag, {}))
    with pytest.raises(NotApplicable, match="mt models edit-video"):
        list(pictures(bag, instructed(tmp_path, instruction="another")))
    pipeline = MutationPipeline([instructed(tmp_path)], 7, "edited")
    with BagSource(bag, {}) as source:
        bundle = next(iter(source))
    drawn = pipeline.derive(bundle).draws
    for path in EditCache.at(str(tmp_path)).directory.rglob("*.png"):
        path.unlink()
    with pytest.raises(InfrastructureError, match="is gone"):
        pipeline.rebuild(bundle, drawn)
    with pytest.raises(UsageError, match="beside video"):
        instructed(tmp_path, only=("road",))
    with pytest.raises(UsageError, match="got 1 of 5 pictures, expected 2 to 5"):
        ClipInventor(instructed(tmp_path), 5, 1)


def test_what_was_invented_is_told_in_the_ledger_and_joined() -> None:
    assert Effects.from_plain(ONE.as_plain()).invented == "cam: invented"
    assert ONE.merged(INSTANT).invented == INSTANT.merged(ONE).invented == "cam: invented"
    assert ONE.change_truth and not INSTANT.change_truth, "labels of the source do not fit"


def test_no_pair_of_an_invented_picture_is_judged() -> None:
    verdicts = [Engine(True).judge(offer(Always()), BUNDLE, (ANSWER, ANSWER), e)[0] for e in (INSTANT, ONE)]
    assert [v.outcome for v in verdicts] == [Outcome.VIOLATED, Outcome.NOT_APPLICABLE]
    silent = Answer.nothing(AnswerStatus.SILENT, "late")
    failed = Answer.nothing(AnswerStatus.FAILED, "raised")
    outcomes = [Engine(True).judge(offer(Always()), BUNDLE, (ANSWER, a), ONE)[0].outcome for a in (silent, failed)]
    assert outcomes == [Outcome.NOT_APPLICABLE, Outcome.ERROR], "that the stack fails needs no comparison"


@pytest.mark.parametrize(("stateless", "later"), [(True, Outcome.VIOLATED), (False, Outcome.SETTLING)])
def test_a_stack_that_remembers_an_invention_is_not_judged_before_it_begins_anew(
    stateless: bool, later: Outcome
) -> None:
    guard, by = MemoryGuard(Engine(True), stateless), offer(Always())

    def outcome(effects: Effects) -> Outcome:
        (verdict,), _ = guard.decide(sent(effects, by), BUNDLE, ANSWER, [ANSWER])
        assert later is not Outcome.SETTLING or verdict.outcome is not later or verdict.judgement.reason == INVENTED
        return verdict.outcome

    assert [outcome(e) for e in (INSTANT, ONE, INSTANT)] == [Outcome.VIOLATED, Outcome.NOT_APPLICABLE, later]
    guard.forget()
    assert outcome(INSTANT) is Outcome.VIOLATED


def test_a_series_ends_with_the_first_invented_picture() -> None:
    by = offer(KeepsCurrentThroughout())
    drifts = Answer(AnswerStatus.ANSWERED, Output(control=Control(0, 0.0, 50.0)))
    rows = []
    for first in (INSTANT, ONE):
        series = Series()
        for number, effects in enumerate((first, ONE, INSTANT)):
            bundle = replace(BUNDLE, index=number, stamp_ns=number * 10**8)
            series.add(sent(effects, by), bundle, (ANSWER, drifts if number else ANSWER))
        (judged,) = series.end()
        assert judged.verdict.outcome in (Outcome.HOLDS, Outcome.NOT_APPLICABLE)
        rows.append(sum(len(stretch) for stretch in judged.stretches))
    assert rows == [1, 0] and judged.verdict.judgement.reason == "cam: invented"


def test_a_replay_decides_the_edited_pictures_alone(models: Models, bag: Path, tmp_path: Path) -> None:
    list(ClipInventor(instructed(tmp_path / "cache"), 5, 3).edit(bag, {}))
    given = {"model": "pix2pix", "video": "svd", "cache": str(tmp_path / "cache")}
    check = {"lane_offset_stable": {}}
    made = {"id": "grey", "kind": "expected", "because": "a test", "requires": ["camera"], "check": check}
    (tmp_path / "grey.yaml").write_text(json.dumps({**made, "mutate": [{"image_instructed": given}]}))
    relations = ["--relations", str(tmp_path / "grey.yaml"), "--transport", "inprocess"]
    out = str(tmp_path / "out")
    assert mt(["replay", str(bag), "--stack", "reference_camera", *relations, "--out", out]) == 3
    with (tmp_path / "out" / "pairs.csv").open(newline="") as file:
        outcomes = [row["outcome"] for row in csv.DictReader(file) if row["relation"] == "grey"]
    assert [outcome != "NOT_APPLICABLE" for outcome in outcomes] == [True, False, False, True, False]
