# SPDX-License-Identifier: Apache-2.0
"""Receivers of LiDAR families as data: what their data sheets say of detection, and what is assumed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.attenuation import REFERENCE_REFLECTIVITY, THRESHOLD_TO_NOISE
from mt_nodes.world.scene.beams import beams_of

#: Recognise the sensor of each cloud; the one where nothing is recognised.
AUTO, GENERIC = "auto", "generic"
#: Range noise of an echo at the threshold, LISA: 0.09 m / √2 (V. Kilic et al., 2021).
NOISE_AT_THRESHOLD_M = float(0.09 / np.sqrt(2.0))
#: Range below which echoes get no stronger: the nearest focal distance in a published calibration of an HDL-64E S3
#: (10.5, 15 and 24 m for its first lasers: velodyne_default_calib_hdl64e-s3.h of MRPT). For other sensors assumed.
FOCUS_M = 10.5


@dataclass(frozen=True)
class DetectionRange:
    """A line of a data sheet: a target of some reflectivity is detected at some range, with some probability."""

    reflectivity: float
    range_m: float
    probability: float = 0.5


@dataclass(frozen=True)
class ReceiverModel:
    """The receiver of a LiDAR family.

    Attributes:
        name: the value of ``sensor``. ranges: what the data sheet tells of detection.
        wavelength_nm: of the laser. pulse_ns: half-power width of a received pulse.
        divergence_mrad: of a round beam of the same cross-section. noise_m: range noise at the threshold.
        focus_m: see :class:`~mt_nodes.relations.mutations.joint.attenuation.Receiver`.
        source: of the figures. assumed: which of them nobody publishes.
    """

    name: str
    ranges: tuple[DetectionRange, ...]
    source: str
    assumed: str
    wavelength_nm: float = 905.0
    pulse_ns: float = 10.0
    divergence_mrad: float = 3.0
    noise_m: float = NOISE_AT_THRESHOLD_M
    focus_m: float = FOCUS_M

    @property
    def max_range_m(self) -> float:
        """Range at which a target of 90 % is detected half of the time.

        An echo goes with ρ / R² (LiDAR equation), and its mean amplitude is 1 + z(P) / t at a detection probability P,
        z the normal quantile and t threshold over noise. Data sheets with two lines contradict that by some percent:
        the geometric mean of both counts.
        """
        from scipy import special  # for those who meet bad air

        constants = [
            (1.0 + special.ndtri(line.probability) / THRESHOLD_TO_NOISE) * line.range_m**2 / line.reflectivity
            for line in self.ranges
        ]
        return float(np.sqrt(REFERENCE_REFLECTIVITY * np.exp(np.mean(np.log(constants)))))


_PULSE = "pulse: Hahner et al. (ICCV 2021) fit 20 ns, then 10 ns, to an HDL-64E in fog, whose laser pulse has 4 ns"
_MODELS = (
    ReceiverModel(
        GENERIC,
        (DetectionRange(0.9, 120.0),),
        "V. Kilic et al., LISA, 2021: 90 % at 120 m; divergence: VLS-128 manual, table F-1",
        f"focus at 5 m; {_PULSE}",
        focus_m=5.0,
    ),
    ReceiverModel(
        "hdl_64e",
        (DetectionRange(0.8, 120.0), DetectionRange(0.1, 50.0)),
        "HDL-64E data sheet: 120 m for cars and foliage (0.80), 50 m for pavement (0.10), 905 nm, 2 mrad; "
        "velodyne.com, concept: 4 ns",
        f"probability of detection ½; one focus for all lasers; {_PULSE}",
        divergence_mrad=2.0,
    ),
    ReceiverModel(
        "vlp_16",
        (DetectionRange(0.8, 100.0),),
        "VLP-16 user manual 63-9243: 100 m, 903 nm, 3.0 by 1.5 mrad",
        f"that 100 m are for 80 %, half of the time; {_PULSE}",
        wavelength_nm=903.0,
        divergence_mrad=2.1,
    ),
    ReceiverModel(
        "vlp_32c",
        (DetectionRange(0.8, 200.0),),
        "VLP-32C user manual 63-9325: 200 m, 903 nm, 3.0 by 1.5 mrad",
        f"that 200 m are for 80 %, half of the time; {_PULSE}",
        wavelength_nm=903.0,
        divergence_mrad=2.1,
    ),
    ReceiverModel(
        "vls_128",
        (DetectionRange(0.1, 220.0),),
        "Alpha Prime data sheet 63-9679: 220 m at 10 %, 903 nm; VLS-128 manual, table F-1: 3.0 by 1.5 mrad",
        f"probability of detection ½; {_PULSE}",
        wavelength_nm=903.0,
        divergence_mrad=2.1,
    ),
    ReceiverModel(
        "os0",
        (DetectionRange(0.8, 50.0), DetectionRange(0.1, 15.0, 0.9)),
        "OS0 data sheet: 50 m at 80 % half of the time, 15 m at 10 % in 90 % of firings, 865 nm (not read again)",
        f"divergence 6.1 mrad (0.35°); range noise as of the OS1; {_PULSE}",
        wavelength_nm=865.0,
        divergence_mrad=6.1,
        noise_m=0.10,
    ),
    ReceiverModel(
        "os1",
        (DetectionRange(0.8, 120.0), DetectionRange(0.1, 40.0, 0.9)),
        "OS1 data sheet: 120 m at 80 %, 40 m at 10 %, 100 klx, one false alarm in 10,000, 850 nm, 0.18°; range "
        "noise of 1.5 cm at a signal-to-noise ratio of 250, 3 cm at 100, 10 cm at 12",
        f"probabilities ½ and 0.9, as of later revisions; that 12 is the threshold's; {_PULSE}",
        wavelength_nm=850.0,
        divergence_mrad=3.1,
        noise_m=0.10,
    ),
    ReceiverModel(
        "os2",
        (DetectionRange(0.8, 240.0), DetectionRange(0.1, 80.0, 0.9)),
        "OS2 data sheet: 240 m at 80 % half of the time, 80 m at 10 % in 90 % of firings, 865 nm (not read again)",
        f"divergence 1.9 mrad (0.11°); range noise as of the OS1; {_PULSE}",
        wavelength_nm=865.0,
        divergence_mrad=1.9,
        noise_m=0.10,
    ),
    ReceiverModel(
        "pandar",
        (DetectionRange(0.1, 200.0),),
        "Pandar40P, Pandar64 and Pandar128 user manuals: 200 m at 10 %, 905 nm (not read again)",
        f"probability of detection ½; divergence 2 mrad; {_PULSE}",
        divergence_mrad=2.0,
    ),
    ReceiverModel(
        "livox",
        (DetectionRange(0.1, 90.0), DetectionRange(0.8, 260.0)),
        "Livox Mid-40 and Horizon user manuals: 90 m at 10 %, 260 m at 80 % (not read again); HAP: 0.28° by 0.03°, one "
        "false alarm in 10,000, 150 m at 10 %",
        f"probability of detection ½; {_PULSE}",
        divergence_mrad=1.6,
    ),
    ReceiverModel(
        "generic_1550",
        (DetectionRange(0.1, 250.0),),
        "makers of 1550 nm sensors (Luminar Iris) advertise 250 m at 10 % (not read again)",
        f"probability of detection ½; divergence 1 mrad; fog as at 905 nm: droplets are larger than both; {_PULSE}",
        wavelength_nm=1550.0,
        divergence_mrad=1.0,
    ),
)
RECEIVER_MODELS = {model.name: model for model in _MODELS}
#: Convention of intensities by which a family is recognised.
_BY_CONVENTION = {
    "kitti": "hdl_64e",
    "hdl_64e": "hdl_64e",
    "ouster_signal": "os1",
    "ouster_reflectivity": "os1",
    "ouster_reflectivity_16": "os1",
    "hesai": "pandar",
    "livox": "livox",
    "luminar": "generic_1550",
}
_VELODYNE_BY_RINGS = {16: "vlp_16", 32: "vlp_32c", 64: "hdl_64e", 128: "vls_128"}


def recognised_sensor(cloud: Cloud) -> str:
    """Return the name of the receiver model of a cloud, the generic one where its family is not recognised.

    By what its intensities mean (:mod:`mt_nodes.data.intensity`), and the number of a Velodyne's rings. Models of one
    family differ: which one of Ouster's it is no cloud tells, OS1 is assumed.
    """
    fields = cloud.echoes.fields
    convention = fields[0].convention.name if fields else ""
    if not convention.startswith("velodyne"):
        return _BY_CONVENTION.get(convention, GENERIC)
    try:
        rings = len(beams_of(cloud).rings)
    except NotApplicable:
        return GENERIC
    return _VELODYNE_BY_RINGS.get(rings, GENERIC)
