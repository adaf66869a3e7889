# SPDX-License-Identifier: Apache-2.0
"""What surfaces do to the light of a LiDAR: diffuse and specular reflection, retro-reflection, transmission.

The unit is brightness: the echo relative to that of a white diffuse surface at normal incidence, ``π f_r cos θ``. It is
the sum of two lobes of the monostatic BRDF:

* diffuse, of a rough surface (M. Oren, S. K. Nayar, SIGGRAPH 1994): seen from the direction of the light, facets of
  slopes σ give ``ρ (cos θ + B / A sin²θ)``, with ``A = 1 - 0.5 σ² / (σ² + 0.33)``, ``B = 0.45 σ² / (σ² + 0.09)``, and
  the reflectivity ρ at normal incidence, where it is measured. Under a clear coat light passes twice: times
  ``((1 - F(θ)) / (1 - F0))²``, with ``F(θ) = F0 + (1 - F0)(1 - cos θ)⁵`` (C. Schlick, Computer Graphics Forum 13(3),
  1994): glancing echoes fall;
* specular (R. L. Cook, K. E. Torrance, ACM TOG 1(1), 1982) with a Beckmann distribution of slopes m, seen from the
  direction of the light: ``F0 exp(-tan²θ / m²) / (4 m² cos⁵θ)``: a glint, where a surface is square to the beam.

Glass transmits: one pane the share t, twice (out and back) t².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.world.scene.meshes import CHROME, GLASS, RETRO, SKIN, TYRE

_TOLERANCE = 1e-4
#: Retro-reflectors return light within this angle (UNECE Regulation 150 measures reflex reflectors up to 20 degrees,
#: EN 12899-1 sheeting up to 40), so many times brighter than white: at least 40, far above any receiver's full scale.
_RETRO_COS, _RETRO_GAIN = float(np.cos(np.radians(40.0))), 40.0


@dataclass(frozen=True)
class Material:
    """A material at the wavelength of automotive LiDARs, 905 nm.

    Attributes:
        diffuse: its diffuse reflectivity, None for that of the mesh.
        roughness_deg: σ, of its facets. 0 is Lambert's law.
        normal_reflectance: F0, of its smooth surface at normal incidence.
        slope: m, root mean square slope of that surface; 0 for a rough one without a lobe.
        transmission: t, of one pane at normal incidence. visible_transmission: the same for light that is seen.
    """

    diffuse: float | None = None
    roughness_deg: float = 0.0
    normal_reflectance: float = 0.0
    slope: float = 0.0
    transmission: float = 0.0
    visible_transmission: float = 0.0
    retro_reflective: bool = False
    source: str = ""


MATTE = Material(roughness_deg=30.0, source="cloth, fur, skin, concrete, rubber: 30° is assumed")
PAINT = Material(
    roughness_deg=15.0,
    normal_reflectance=0.04,
    slope=0.1,
    source="clear coat of refractive index 1.5: ((n - 1) / (n + 1))² = 0.04; slopes (orange peel, curvature) "
    "assumed; 15° (dust, flakes) as sides of recorded cars come back at glancing angles of 9°",
)
PANE = Material(
    diffuse=0.001,
    normal_reflectance=0.043,
    slope=0.03,
    transmission=0.3,
    visible_transmission=0.7,
    source="soda-lime glass, n = 1.52 (M. Rubin, Solar Energy Materials 12, 1985). 70 % of visible light is the least "
    "for windscreens and front side windows (UNECE Regulation 43); the iron of tinted glass absorbs more near 1 µm: "
    "0.3 is fitted to the windows of recorded cars; slopes, and the dust that makes it diffuse, are assumed",
)
BRIGHT_METAL = Material(
    diffuse=0.05,
    normal_reflectance=0.6,
    slope=0.1,
    source="chromium, of the order of P. B. Johnson, R. W. Christy, Physical Review B 9, 1974; the rest assumed",
)
RETRO_REFLECTOR = Material(retro_reflective=True, source="number plates, reflex reflectors, sheeting of signs")

#: Meshes tell materials apart by these reflectivities; all other triangles have the finish of their object.
_BY_REFLECTIVITY = {GLASS: PANE, RETRO: RETRO_REFLECTOR, CHROME: BRIGHT_METAL, TYRE: MATTE, SKIN: MATTE}
#: Finish of an object by the class of its kind; others are matte.
_FINISHES = dict.fromkeys(("car", "truck", "bus", "motorcycle"), PAINT)

#: Diffuse reflectivity of car paints at 905 nm. Carbon black, in dark paints, absorbs there as in visible light, and
#: organic pigments do not: dark paints without it reflect over 60 % (T. Lim et al., Macromolecular Research 30,
#: 2022). Black is the order of such paints, the others are assumed, of the order of intensities of recorded cars.
PAINTS: dict[str, float] = {"white": 0.75, "silver": 0.5, "red": 0.55, "blue": 0.3, "grey": 0.25, "black": 0.05}


def finish_of(label: str) -> Material:
    """Return the finish of objects of a class of detections."""
    return _FINISHES.get(label, MATTE)


def painted(label: str) -> bool:
    """Return whether objects of a class have a paint of :data:`PAINTS`."""
    return finish_of(label) is PAINT


def panes(reflectivity: Floats) -> Mask:
    """Return which triangles (T,) of a mesh with these reflectivities are glass."""
    return np.asarray(np.abs(reflectivity - GLASS) < _TOLERANCE)


class Faces:
    """Optics of a mesh's triangles.

    ``reflectivity``: (T,) of its triangles, by which materials are told apart. ``finish``: of triangles whose
    reflectivity names no material.
    """

    def __init__(self, reflectivity: Floats, finish: Material = MATTE) -> None:
        known = [finish, *_BY_REFLECTIVITY.values()]
        number = np.zeros(len(reflectivity), dtype=np.int64)
        for i, value in enumerate(_BY_REFLECTIVITY, start=1):
            number[np.abs(reflectivity - value) < _TOLERANCE] = i
        self.glass = panes(reflectivity)
        diffuse = np.array([np.nan if m.diffuse is None else m.diffuse for m in known])[number]
        self._diffuse = np.where(np.isnan(diffuse), reflectivity, diffuse)
        square = np.square(np.radians([m.roughness_deg for m in known]))[number]
        self._glancing = 0.45 * square / (square + 0.09) / (1.0 - 0.5 * square / (square + 0.33))
        self._normal_reflectance, self._slope, self._transmission, self._retro = (
            np.array([getattr(m, name) for m in known], dtype=np.float64)[number]
            for name in ("normal_reflectance", "slope", "transmission", "retro_reflective")
        )

    def brightness(self, triangle: npt.NDArray[np.integer], cosine: Floats) -> Floats:
        """Return the brightness (n,) of hits on triangles (n,) at cosines of incidence (n,)."""
        cosine = np.clip(cosine, 1e-3, 1.0)
        f0, slope = self._normal_reflectance[triangle], self._slope[triangle]
        # Without a smooth coat nothing is reflected off its top.
        passed = np.where(f0 > 0.0, (1.0 - _fresnel(f0, cosine)) / (1.0 - f0), 1.0)
        rough = cosine + self._glancing[triangle] * (1.0 - np.square(cosine))
        bright = self._diffuse[triangle] * rough * passed * passed
        at = np.flatnonzero(slope > 0.0)
        c2, m2 = np.square(cosine[at]), np.square(slope[at])
        bright[at] += f0[at] * np.exp((1.0 - 1.0 / c2) / m2) / (4.0 * m2 * c2 * c2 * cosine[at])
        facing = (self._retro[triangle] > 0.0) & (cosine >= _RETRO_COS)
        return np.asarray(np.where(facing, _RETRO_GAIN * bright, bright))

    def transmission(self, triangle: npt.NDArray[np.integer], cosine: Floats) -> Floats:
        """Return the share of light (n,) that one pane lets through at these cosines of incidence."""
        f0 = self._normal_reflectance[triangle]
        passed = (1.0 - _fresnel(f0, np.clip(cosine, 0.0, 1.0))) / (1.0 - f0)
        # In at one surface, out at the other.
        return np.asarray(self._transmission[triangle] * passed * passed)


def _fresnel(normal: Floats, cosine: Floats) -> Floats:
    return np.asarray(normal + (1.0 - normal) * (1.0 - cosine) ** 5)
