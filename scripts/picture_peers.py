# SPDX-License-Identifier: Apache-2.0
"""Operators on pictures of other libraries, beside the mutation that each is nearest to.

The libraries are optional: ``pip install --no-deps --target DIR albumentations==2.0.8 …`` into a directory of their
own, and ``PYTHONPATH=DIR`` before the command that compares (docs/pictures.md has the line). Nothing of them is used
but for comparison.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Change = Callable[[Pixels], Pixels]
ALBUMENTATIONS, IMAGECORRUPTIONS = "albumentations", "imagecorruptions"
LIBRARIES = (ALBUMENTATIONS, IMAGECORRUPTIONS)
#: Severity of imagecorruptions, 1 to 5.
SEVERITY = 3
#: Operator of albumentations by mutation, with settings of similar strength; its own defaults where none are given.
_ALBUMENTATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "brightness_changed": (
        "RandomBrightnessContrast",
        {"brightness_limit": (0.15, 0.15), "contrast_limit": (0.0, 0.0)},
    ),
    "contrast_changed": ("RandomBrightnessContrast", {"brightness_limit": (0.0, 0.0), "contrast_limit": (0.3, 0.3)}),
    "exposure_changed": ("RandomBrightnessContrast", {"brightness_limit": (0.3, 0.3), "contrast_limit": (0.0, 0.0)}),
    "gamma_changed": ("RandomGamma", {"gamma_limit": (150, 150)}),
    "saturation_changed": ("HueSaturationValue", {"hue_shift_limit": 0, "sat_shift_limit": 30, "val_shift_limit": 0}),
    "white_balance_shifted": ("PlanckianJitter", {}),
    "dusk": ("RandomBrightnessContrast", {"brightness_limit": (-0.4, -0.4), "contrast_limit": (0.0, 0.0)}),
    "night": ("RandomBrightnessContrast", {"brightness_limit": (-0.6, -0.6), "contrast_limit": (0.0, 0.0)}),
    "fog": ("RandomFog", {}),
    "rain": ("RandomRain", {"rain_type": "heavy"}),
    "snow": ("RandomSnow", {"method": "texture"}),
    "road_covered": ("RandomSnow", {"method": "bleach"}),
    "sun_glare": ("RandomSunFlare", {"method": "physics_based"}),
    "lens_flare": ("RandomSunFlare", {}),
    "low_sun": ("RandomShadow", {}),
    "lens_drops": ("Spatter", {"mode": "rain"}),
    "lens_dirt": ("Spatter", {"mode": "mud"}),
    "image_defocused": ("Defocus", {"radius": (4, 4)}),
    "image_motion_blurred": ("MotionBlur", {"blur_limit": (21, 21)}),
    "image_mirrored": ("HorizontalFlip", {}),
    "image_rotated": ("Rotate", {"limit": (3, 3)}),
    "image_occluded": ("CoarseDropout", {}),
    "sensor_noise": ("ISONoise", {}),
    "impulse_noise": ("SaltAndPepper", {}),
    "pixels_dead": ("PixelDropout", {}),
    "jpeg_compressed": ("ImageCompression", {"quality_range": (20, 20)}),
    "image_pixelated": ("Downscale", {"scale_range": (0.25, 0.25)}),
    "lens_drifted": ("OpticalDistortion", {"distort_limit": (0.02, 0.02)}),
    "lens_film": ("GlassBlur", {}),
    "vignetting_drifted": ("Illumination", {"mode": "corner"}),
}
#: Corruption of imagecorruptions by mutation.
_IMAGECORRUPTIONS = {
    "brightness_changed": "brightness",
    "exposure_changed": "brightness",
    "contrast_changed": "contrast",
    "saturation_changed": "saturate",
    "fog": "fog",
    "snow": "snow",
    "lens_drops": "spatter",
    "image_defocused": "defocus_blur",
    "image_motion_blurred": "motion_blur",
    "sensor_noise": "shot_noise",
    "impulse_noise": "impulse_noise",
    "jpeg_compressed": "jpeg_compression",
    "image_pixelated": "pixelate",
    "lens_film": "glass_blur",
    "lens_frost": "frost",
}


def peers_of(mutation: str, seed: int = 0) -> dict[str, tuple[str, Change]]:
    """Return the nearest operators by library: what each is called, and the change of a picture (H, W, 3) RGB.

    Libraries that are not installed, or have no such operator, are left out.
    """
    made = (_of_albumentations(mutation, seed), _of_imagecorruptions(mutation, seed))
    return {library: found for library, found in zip(LIBRARIES, made, strict=True) if found is not None}


def installed() -> dict[str, str]:
    """Return the version of each library that can be imported."""
    found = zip(LIBRARIES, (_albumentations(), _imagecorruptions()), strict=True)
    return {name: version(name) for name, module in found if module}


def _of_albumentations(mutation: str, seed: int) -> tuple[str, Change] | None:
    name, settings = _ALBUMENTATIONS.get(mutation, ("", {}))
    library = _albumentations()
    if library is None or not name:
        return None
    change = library.Compose([getattr(library, name)(**settings, p=1.0)], seed=seed)
    return name, lambda rgb: np.asarray(change(image=rgb)["image"])


def _of_imagecorruptions(mutation: str, seed: int) -> tuple[str, Change] | None:
    name = _IMAGECORRUPTIONS.get(mutation, "")
    library = _imagecorruptions()
    if library is None or not name:
        return None

    def change(rgb: Pixels) -> Pixels:
        np.random.seed(seed)  # it draws from NumPy's global generator
        return np.asarray(library.corrupt(rgb, corruption_name=name, severity=SEVERITY))

    return f"{name}, severity {SEVERITY}", change


@functools.cache
def _albumentations() -> Any:
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # or it asks the network for a newer version
    try:
        import albumentations
    except ImportError:
        return None
    return albumentations


@functools.cache
def _imagecorruptions() -> Any:
    """Return the library with the two names that it takes from older versions of NumPy and scikit-image."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pkg_resources, which it imports
            from imagecorruptions import corrupt, corruptions
    except ImportError:
        return None
    if not hasattr(np, "float_"):
        np.float_ = np.float64
    blur = corruptions.gaussian

    def gaussian(image: Any, sigma: float, multichannel: bool = False, **given: Any) -> Any:
        return blur(image, sigma=sigma, channel_axis=-1 if multichannel else None, **given)

    corruptions.gaussian = gaussian
    return type("Library", (), {"corrupt": staticmethod(corrupt)})


def described(libraries: Mapping[str, str]) -> str:
    """Return the libraries and versions in words, those that are missing, too."""
    return ", ".join(f"{name} {libraries.get(name, '(not installed)')}" for name in LIBRARIES)
