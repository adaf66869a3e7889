# SPDX-License-Identifier: Apache-2.0
"""Adds a traffic light or a traffic sign."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.world.scene.faces import SIGNS
from mt_nodes.world.scene.figures import Figure
from mt_nodes.world.scene.roadside import light_body, light_figure, sign_body, sign_figure
from mt_nodes.world.scene.sight import RaycastBody
from mt_nodes.world.scene.signals import SIGNALS


@dataclass(frozen=True)
class PostAdded(ObjectAdded):
    """Base of mutations that add something on a post to the right of the way ahead."""

    where: str = param("bearing", choices=("path", "beside", "bearing"), help="in the way, beside it, or in a sector")
    range_m: tuple[float, float] = param(
        (7.0, 16.0),
        low=3.0,
        high=100.0,
        unit="m",
        aspect="place",
        help="nearest and farthest from the ego, over ground",
    )
    bearing_rad: tuple[float, float] = param(
        (-0.45, -0.1),
        low=-6.2832,
        high=6.2832,
        unit="rad",
        aspect="place",
        help="0 ahead, positive left; where: bearing only",
    )
    yaw_rad: float | None = param(
        0.0, low=-6.2832, high=6.2832, unit="rad", aspect="place", help="0: its face looks back along x; any if unset"
    )
    clearance_m: float = param(0.4, low=0.0, high=20.0, unit="m", aspect="fixed", help="free space around it")

    @property
    def variants(self) -> int:
        """None: its kind says all of it."""
        return 0

    @property
    def label(self) -> str:
        """None that LiDAR stacks have a class for."""
        return "unknown"

    @property
    @abstractmethod
    def image_label(self) -> str:
        """The class that an image detector should give it."""


@dataclass(frozen=True)
class LightAdded(PostAdded):
    """Adds a traffic light on a post on free ground, to the right of the way ahead, its lenses towards the ego.

    As ``object_added``; cameras see which lens is lit. Rays measure the same housing in any state. A flashing light is
    shown lit.

    Guaranteed: as for ``object_added``: hits lie on rays of the sensor and on the light, nothing remains behind them,
    and pixels change only where lines of sight meet it.
    """

    kind: str = param("red", choices=tuple(SIGNALS), help="what shines")

    def body_in(self, draw: Draw) -> RaycastBody:
        """Return the light's mesh for rays."""
        return light_body(self.kind)

    def figure_in(self, draw: Draw) -> Figure:
        """Return the light's mesh for cameras."""
        return light_figure(self.kind)

    @property
    def image_label(self) -> str:
        """The class that an image detector should give it."""
        return "traffic light"


@dataclass(frozen=True)
class SignAdded(PostAdded):
    """Adds a traffic sign on a post on free ground, to the right of the way ahead, its face towards the ego.

    As ``object_added``, with a plate of the sign's own outline; cameras see its face, German or Californian. What the
    sign demands is up to the relation.

    Guaranteed: as for ``object_added``: hits lie on rays of the sensor and on the sign, nothing remains behind them,
    and pixels change only where lines of sight meet it.
    """

    kind: str = param("stop", choices=tuple(SIGNS), help="which sign; names that end in _us are Californian forms")
    value: int = param(
        0, low=0, high=150, aspect="fixed", help="the number on a sign that bears one, in its own unit; 0: the usual"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value and not SIGNS[self.kind].value:
            raise UsageError(f"value: got {self.value}, but '{self.kind}' bears no number")

    def body_in(self, draw: Draw) -> RaycastBody:
        """Return the sign's mesh for rays."""
        return sign_body(self.kind)

    def figure_in(self, draw: Draw) -> Figure:
        """Return the sign's mesh for cameras."""
        return sign_figure(self.kind, self.value)

    @property
    def image_label(self) -> str:
        """The class that an image detector should give it."""
        return "traffic sign"
