# SPDX-License-Identifier: Apache-2.0
"""A joint change shows in every message or says why not; and a relation about a sensor that it leaves is not judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from made_images import street

from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.data.effects import Effects
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud
from mt_nodes.relations.pipeline import MutationPipeline


@dataclass(frozen=True)
class Knock(EverySensor):
    """Lifts every point and every pixel, unless it does not reach them."""

    cloud: str = "seen"
    image: str = "seen"

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        return _reached(self.cloud, "the cloud looks elsewhere")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        return _reached(self.image, "the camera looks elsewhere")

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        if self.cloud == "silent":
            return replace(cloud)
        raw = cloud.raw.copy()
        raw.view(cloud.points.dtype)["z"] += 0.1
        return cloud.with_raw(raw, height=cloud.height)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        pixels = view.picture.pixels.copy()
        return pixels if self.image == "silent" else np.minimum(pixels, 254) + np.uint8(1)

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        return None

    def prove_images(self, source: Bundle, followup: Bundle, draw: Draw) -> str | None:
        return None

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        return None


def _reached(what: str, reason: str) -> Draw:
    if what == "out of sight":
        raise NoEffect(reason)
    return {"by": 1}


def derive(mutation: Any, *requires: str, bundle: Bundle | None = None) -> Any:
    return MutationPipeline([mutation], 0, "r", requires=requires).derive(bundle or street())


@pytest.mark.parametrize("sensor", ["cloud", "image"])
def test_what_changes_nothing_without_a_reason_is_invalid(sensor: str) -> None:
    """Another object with the same bytes is no change, however new it is."""
    broken = derive(Knock(**{sensor: "silent"})).broken
    topic = {"cloud": street().clouds, "image": street().images}[sensor][0].topic
    assert (
        broken
        == f"knock: {topic} of the {'lidar' if sensor == 'cloud' else 'camera'} shows nothing of it, without a reason"
    )
    assert derive(Knock()).broken is None


def test_an_untouched_message_stays_and_says_why() -> None:
    derived = derive(Knock(image="out of sight"))
    image = street().images[0]
    assert derived.broken is None and derived.followup.first.images[0] is image
    assert derived.effects.unchanged == {image.topic: "the camera looks elsewhere"}
    assert Effects.from_plain(derived.effects.as_plain()).unchanged == derived.effects.unchanged
    again = MutationPipeline([Knock(image="out of sight")], 0, "r").rebuild(street(), derived.draws)
    assert again.effects.unchanged == derived.effects.unchanged


@pytest.mark.parametrize("sensor", ["cloud", "image"])
def test_a_relation_about_a_sensor_that_stays_has_no_followup(sensor: str) -> None:
    mutation, own, other = Knock(**{sensor: "out of sight"}), "lidar", "camera"
    if sensor == "image":
        own, other = other, own
    for needs in ((own,), (own, other), ("lidar_only",) if own == "lidar" else (own,)):
        with pytest.raises(NotApplicable, match=f"no {own} shows the change: .* looks elsewhere"):
            derive(mutation, *needs)
    for needs in ((other,), ("lidar or camera",), (), ("stateless",)):
        assert derive(mutation, *needs).broken is None


def test_what_reaches_no_sensor_has_no_followup() -> None:
    with pytest.raises(NotApplicable, match="the cloud looks elsewhere; the camera looks elsewhere"):
        derive(Knock("out of sight", "out of sight"))
    alone = replace(street(), clouds=(), extra_clouds=street().clouds)
    with pytest.raises(NotApplicable, match=r"^the camera looks elsewhere$"):
        derive(Knock(image="out of sight"), bundle=alone)


def test_a_later_mutation_that_changes_the_message_takes_the_reason_away() -> None:
    two = MutationPipeline([Knock(image="out of sight"), Knock()], 0, "r", requires=("camera",)).derive(street())
    assert two.broken is None and two.effects.unchanged == {}


def test_a_followup_that_claims_a_reason_but_changes_breaks_its_guarantee() -> None:
    mutation = Knock(cloud="out of sight")
    draw = mutation.draw(np.random.default_rng(0), street(), None)
    made = mutation.apply(street(), draw)
    moved = made.first.with_clouds([Knock().change_cloud(street(), street().clouds[0], {})])
    assert "drawn to stay" in str(mutation.guarantee(street(), Followup(((0, moved),)), draw))


def test_of_two_lidars_one_may_see_nothing() -> None:
    @dataclass(frozen=True)
    class Front(EachCloud):
        def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
            return _reached("out of sight" if cloud.topic == "/rear" else "seen", "it looks back")

        def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
            return Knock().change_cloud(bundle, cloud, draw)

        def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
            return None

    front = street().clouds[0]
    both = replace(street(), clouds=(front, replace(front, topic="/rear")), images=(), camera_infos=())
    derived = derive(Front(), "lidar", bundle=both)
    assert derived.broken is None and derived.effects.unchanged == {"/rear": "it looks back"}
    with pytest.raises(NotApplicable, match=r"^it looks back$"):
        derive(Front(), bundle=replace(both, clouds=both.clouds[1:]))
