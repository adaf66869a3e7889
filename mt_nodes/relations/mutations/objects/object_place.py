# SPDX-License-Identifier: Apache-2.0
"""An added object over an episode: its place, the variant of its kind, and the sun on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.objects.ground_shadow import sun_over
from mt_nodes.relations.mutations.objects.world_place import WorldPlace
from mt_nodes.world.camera.sun_direction import SunLight
from mt_nodes.world.modelling.model_variants import variants_of
from mt_nodes.world.scene.lamps import LAMPS, OFF
from mt_nodes.world.scene.materials import painted
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.placement_solver import upright


@dataclass(frozen=True, eq=False)
class ObjectPlace(WorldPlace):
    """Where an object is over an episode, and how it looks.

    Attributes:
        variant: number among those of its kind. cutout: digest of a recorded object in its place, empty for none.
        sun: in its own frame, None for an overcast sky.
    """

    variant: int = 1
    cutout: str = ""
    sun: SunLight | None = None

    @classmethod
    def of(cls, place: WorldPlace, looks: Draw) -> ObjectPlace:
        """Return a place with the variant, or the cut-out, that draws say."""
        return cls(**vars(place), variant=int(looks.get("variant", 1)), cutout=str(looks.get("cutout", "")))

    def in_sun(self, bundle: Bundle, ego_frame_id: str) -> ObjectPlace:
        """Return it in the sun that the first picture of a bundle shows; its frame does not turn afterwards."""
        sun = sun_over(bundle, ego_frame_id)
        if sun is None:
            return self
        turn = upright(self.place(bundle, ego_frame_id))[:3, :3]
        return replace(self, sun=sun.turned(turn.T))

    def looks(self, variants: int) -> Draw:
        """Return what draws say of it; ``variants`` is their number, 0 for one mesh."""
        looks: Draw = {"cutout": self.cutout} if self.cutout else {"variant": self.variant} if variants else {}
        return looks if self.sun is None else {**looks, "sun": self.sun.numbers()}


def refuse_looks(kind: str, lamps: str, variant: int, paint: str) -> None:
    """Refuse lamps, a variant (0: any) or paint (empty: its own) that a kind of object does not have.

    Raises UsageError: it says what the kind has.
    """
    if lamps not in (known := (OFF, *LAMPS.get(kind, ()))):
        raise UsageError(f"lamps: got '{lamps}', a {kind} has {', '.join(known)}")
    if variant and not variants_of(kind):
        raise UsageError(f"variant: got {variant}, but every {kind} is the same")
    if paint and not painted(KINDS[kind].label):
        raise UsageError(f"paint: got '{paint}', but a {kind} is not painted: vehicles are")
