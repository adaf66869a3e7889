# SPDX-License-Identifier: Apache-2.0
"""What people look like: stature, stride, skin, hair, clothes, bags; ten adults."""

from __future__ import annotations

from dataclasses import dataclass

Rgb = tuple[float, float, float]

#: Parts of a body, which differ in colour.
BARE, TOP, TROUSERS, SHOE, HAIR, BAG, COLLAR, SKIRT = range(8)


@dataclass(frozen=True)
class Dress:
    """What a person looks like.

    Attributes:
        skin, hair, top, trousers, shoes, bag: linear colours.
        top_kind: shirt (bare forearms), jacket, coat (to the thigh) or hoodie. legs: trousers, shorts, skirt.
        hair_kind: short, long, bun, cap, bald. bag_kind: none, backpack, shoulder.
        stature_m: height. girth: width relative to the usual. phase: of the stride, 0 to 1. vigour: of the stride.
        stripe: colour of a band around the chest, None for none. bend_rad: of the trunk, forwards.
        stick: whether there is a walking stick in the right hand. hair_kind may be ``helmet``, of the bag's colour.
    """

    skin: Rgb
    hair: Rgb
    top: Rgb
    trousers: Rgb
    shoes: Rgb = (0.03, 0.03, 0.03)
    bag: Rgb = (0.05, 0.05, 0.06)
    top_kind: str = "jacket"
    legs: str = "trousers"
    hair_kind: str = "short"
    bag_kind: str = "none"
    stature_m: float = 1.75
    girth: float = 1.0
    phase: float = 0.0
    vigour: float = 1.0
    stripe: Rgb | None = None
    bend_rad: float = 0.05
    stick: bool = False


_PALE, _LIGHT, _OLIVE, _BROWN, _DARK_SKIN = (
    (0.55, 0.36, 0.27),
    (0.48, 0.29, 0.2),
    (0.36, 0.2, 0.12),
    (0.22, 0.115, 0.065),
    (0.09, 0.045, 0.028),
)
_FAIR, _RED_HAIR, BRUNETTE, _BLACK_HAIR, GREY = (
    (0.3, 0.19, 0.08),
    (0.2, 0.07, 0.02),
    (0.05, 0.028, 0.015),
    (0.012, 0.01, 0.009),
    (0.32, 0.31, 0.3),
)
_JEANS, _NAVY, _BLACK, _KHAKI, _STONE = (
    (0.045, 0.065, 0.13),
    (0.015, 0.02, 0.045),
    (0.018, 0.018, 0.02),
    (0.16, 0.13, 0.08),
    (0.32, 0.28, 0.22),
)

#: Ten adults who walk; clothes and colours are assumed to look like a town's.
ADULTS: tuple[Dress, ...] = (
    Dress(_LIGHT, BRUNETTE, (0.04, 0.07, 0.17), _STONE, top_kind="jacket", phase=0.02, stature_m=1.78),
    Dress(
        _PALE,
        _FAIR,
        (0.42, 0.06, 0.05),
        _NAVY,
        top_kind="shirt",
        hair_kind="long",
        bag_kind="shoulder",
        bag=(0.12, 0.06, 0.03),
        stature_m=1.67,
        girth=0.92,
        phase=0.55,
    ),
    Dress(
        _DARK_SKIN,
        _BLACK_HAIR,
        (0.6, 0.6, 0.58),
        _JEANS,
        top_kind="shirt",
        bag_kind="backpack",
        shoes=(0.5, 0.5, 0.5),
        stature_m=1.82,
        phase=0.1,
    ),
    Dress(
        _OLIVE,
        _BLACK_HAIR,
        (0.06, 0.06, 0.065),
        _BLACK,
        top_kind="coat",
        hair_kind="bun",
        stature_m=1.7,
        girth=0.95,
        phase=0.48,
    ),
    Dress(
        _PALE,
        GREY,
        (0.2, 0.19, 0.15),
        _KHAKI,
        top_kind="jacket",
        hair_kind="cap",
        bag=(0.05, 0.06, 0.05),
        stature_m=1.74,
        girth=1.15,
        phase=0.92,
        vigour=0.8,
    ),
    Dress(
        _BROWN,
        _BLACK_HAIR,
        (0.5, 0.33, 0.03),
        _JEANS,
        top_kind="hoodie",
        stature_m=1.76,
        girth=1.05,
        phase=0.62,
        shoes=(0.35, 0.35, 0.36),
    ),
    Dress(
        _LIGHT,
        _RED_HAIR,
        (0.1, 0.2, 0.13),
        (0.08, 0.05, 0.05),
        top_kind="hoodie",
        legs="skirt",
        hair_kind="long",
        stature_m=1.65,
        girth=0.95,
        phase=0.08,
    ),
    Dress(
        _LIGHT,
        (0.1, 0.06, 0.03),
        (0.13, 0.25, 0.45),
        (0.3, 0.27, 0.22),
        top_kind="shirt",
        legs="shorts",
        stature_m=1.8,
        phase=0.52,
        shoes=(0.42, 0.42, 0.42),
        stripe=(0.6, 0.6, 0.6),
    ),
    Dress(
        _OLIVE,
        BRUNETTE,
        (0.22, 0.04, 0.07),
        _BLACK,
        top_kind="jacket",
        hair_kind="long",
        bag_kind="backpack",
        bag=(0.1, 0.12, 0.16),
        stature_m=1.69,
        girth=0.97,
        phase=0.97,
    ),
    Dress(
        _PALE,
        GREY,
        (0.16, 0.17, 0.19),
        (0.05, 0.05, 0.055),
        top_kind="coat",
        hair_kind="bald",
        stature_m=1.77,
        girth=1.1,
        phase=0.3,
        vigour=0.7,
    ),
)
