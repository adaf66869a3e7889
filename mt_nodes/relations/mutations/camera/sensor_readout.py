# SPDX-License-Identifier: Apache-2.0
"""Pictures of sensors that read row by row, under pulsed light, or with binned photosites."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels, lossy, spread_px
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.moving_view import MovingView, places_px
from mt_nodes.relations.mutations.camera.picture_origin import differs_from_origin
from mt_nodes.relations.mutations.ego_speed import RATE, speed_in
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.depth import cell_px
from mt_nodes.world.camera.light import light_of, table, values_of
from mt_nodes.world.camera.local_relight import stripe

#: Stride of the cells that are checked for visible motion.
_PROBED_CELLS = 4
#: Rows of cells that are fetched at a time, so that where they come from fits the processor's cache.
_STRIPE_CELLS = 12
#: Stride of the columns whose light is measured.
_PROBED_PX = 8


@dataclass(frozen=True)
class RollingShutter(MovingView):
    """Shows each row at its own time, as a CMOS sensor without a global shutter does while the vehicle moves.

    Row r of H is exposed (r / (H - 1) - 1/2) ``readout_ms`` from the stamp, which is the middle row's; the recorded
    picture is taken for one of a global shutter. A place is moved by its displacement during the whole read-out, times
    the share of its row: uniform motion (M. Meingast, C. Geyer, S. Sastry, "Geometric Models of Rolling-Shutter
    Cameras", OMNIVIS 2005). Moving objects are treated as if they stood.

    Guaranteed: every place has the brightness of the place where the camera, posed as at the time of its row, sees the
    same point, within half of what a shift by one pixel changes.
    """

    readout_ms: float = param(
        30.0, low=0.5, high=200.0, unit="ms", neutral=0.5, help="time between the first row and the last"
    )

    @property
    def seconds(self) -> float:
        """The read-out."""
        return self.readout_ms * 1e-3

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random; take the ego's motion.

        Raises NotApplicable: range or pose of the camera is unknown, or hardly a pixel moves by a half.
        """
        draw = self.drawn_motion(view)
        path = self.path_px(view, draw, every=_PROBED_CELLS)
        length = np.hypot(path[..., 0], path[..., 1]) * np.abs(np.linspace(-0.5, 0.5, len(path)))[:, None]
        if (longest := float(np.quantile(length, 0.95))) < 0.5:
            raise NotApplicable(f"{view.image.topic}: of 20 pixels 19 move by less than {longest:.2f}, 0.5 is needed")
        return draw

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Fetch each pixel from where it was half a read-out before or after."""
        size, step_px = view.picture.size, cell_px(view.picture.size[1])
        path = self.path_px(view, draw)
        # In a later row the camera has moved on: its place now is where it was before, plus the path.
        middles = (np.arange(len(path)) * step_px + (step_px - 1) / 2.0) / (size[0] - 1.0)
        shift = (path * (middles - 0.5)[:, None, None]).astype(np.float32)
        pixels, places = view.picture.pixels, places_px(size)
        new = np.empty_like(pixels)
        for first in range(0, len(path), _STRIPE_CELLS):
            rows, at = stripe(slice(first, first + _STRIPE_CELLS), view.picture, step_px)
            back = cv2.add(places[rows], at(shift))
            new[rows] = cv2.remap(pixels, back, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        return new

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare with where points of the old picture lie for the pose of a row's own time."""
        step, height = cell_px(old.picture.size[1]), old.picture.size[0]
        ranges = self.ranges_m(old)
        rows, columns = (np.arange(2, n - 2, max(1, n // 40)) for n in ranges.shape)
        grid = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
        was_px = grid * step + (step - 1) / 2.0
        points = old.camera().directions(was_px) * ranges[grid[:, 1], grid[:, 0], None]
        smooth = cv2.dilate(ranges, np.ones((5, 5))) - cv2.erode(ranges, np.ones((5, 5))) < 0.1 * ranges
        now_px = was_px
        for _ in range(3):  # the time of a row depends on where the point comes to lie
            now_px = self._seen_at(old, draw, points, (now_px[:, 1] / (height - 1.0) - 0.5) * self.seconds)
        usable = smooth[grid[:, 1], grid[:, 0]] & np.isfinite(now_px).all(axis=1)
        return differs_from_origin(old, new, now_px[usable], was_px[usable])

    def _seen_at(self, view: View, draw: Draw, points_m: Floats, times_s: Floats) -> Floats:
        """Return the pixels (N, 2) at which the camera, driven on for some seconds (N,), sees points (N, 3)."""
        axes, rate = self.axes(view), self.yaw_rate_radps + float(draw.get(RATE, 0.0))
        turned = Rotation.from_rotvec(axes[:, 2] * rate * times_s[:, None])
        driven_m = axes[:, 0] * speed_in(draw, self.ego_speed_mps) * times_s[:, None]
        return view.camera().project(turned.inv().apply(points_m - driven_m))


@dataclass(frozen=True)
class ImagePixelated(EachImage):
    """Joins photosites to squares, as a sensor does that bins them, or a link that halves its resolution.

    Size and calibration stay: each square shows the mean of its photosites' samples.

    Guaranteed: within every square all pixels are alike, and their mean is that of the old ones to half a step (except
    for what the encoding does).
    """

    bin_px: int = param(4, low=2, high=64, unit="pixels", neutral=2, help="width and height of a square")
    random: ClassVar[bool] = False

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Shrink by the mean, enlarge by repetition; squares that the edges cut go on beyond as mirror images."""
        height, width = view.picture.size
        down, right = (-n % self.bin_px for n in (height, width))
        whole = view.picture.pixels
        if down or right:
            whole = cv2.copyMakeBorder(whole, 0, down, 0, right, cv2.BORDER_REFLECT)
        few = cv2.resize(whole, None, fx=1.0 / self.bin_px, fy=1.0 / self.bin_px, interpolation=cv2.INTER_AREA)
        wide = cv2.resize(few, (whole.shape[1], len(few)), interpolation=cv2.INTER_NEAREST)
        return np.repeat(wide[:, :width], self.bin_px, axis=0)[:height]

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare extremes and means of whole squares."""
        loose = lossy(new.image) or spread_px(new.image)
        unit = old.picture.full_scale / 255.0
        (was_span, was), (span, mean) = (self._squares(view) for view in (old, new))
        if span.mean() > (0.5 * was_span.mean() + unit if loose else 0.0):
            return f"pixels of a square differ by {span.mean():.2f} samples on average"
        moved, allowed = float(np.abs(mean - was).mean()), (2.0 if loose else 0.8) * unit
        return f"the squares' means moved by {moved:.2f} samples, allowed {allowed:.2f}" if moved > allowed else None

    def _squares(self, view: View) -> tuple[Singles, Singles]:
        """Return the span and the mean (h, w) of the brightness in each whole square."""
        side, luma = self.bin_px, view.picture.luma()
        whole = tuple(slice(0, n // side * side, side) for n in view.picture.size)
        square = np.ones((side, side), np.uint8)
        most, least = (how(luma, square, anchor=(0, 0))[whole] for how in (cv2.dilate, cv2.erode))
        mean = cv2.boxFilter(luma, cv2.CV_32F, (side, side), anchor=(0, 0))[whole]
        return most.astype(np.float32) - least, np.asarray(mean)


#: Fourier terms of a pulse train; what is left out is below a thousandth after an exposure of a tenth of a period.
_HARMONICS = 400
#: Coloured lamps: at least this bright and this saturated, in shares; of at most this share of the picture (assumed).
_LAMP_LIGHT, _LAMP_COLOUR, _LAMP_AREA = 0.65, 0.45, 0.004
_LEAST_LAMP_PX = 6
#: Width of the ring around a lamp, and the light that its brightest fifth has at most.
_RING_PX, _RING_LIGHT = 4, 0.6
#: Share of a lamp's light that is its own; the rest is daylight that it reflects (assumed).
_OWN_LIGHT = 0.8


@dataclass(frozen=True)
class LightPulsed(EachImage):
    """Shows light of pulsed LEDs: rows that are exposed while it is off are dark, so that bands or dark lamps appear.

    Light of frequency f is on for a share ``duty`` of each period. A row that is exposed from t to t + exposure gets
    the part of the pulses within, relative to the mean over time, which the recorded picture is taken to show; with
    a share ``depth`` of the light pulsed, 1 - depth + depth · part. ``of: lamps`` changes small, bright, red, amber or
    green spots alone (traffic lights, brake lights, signs; a fifth of their light is reflected daylight), ``of: light``
    all light, as in a tunnel or at night under lamps. Rows follow each other as in a rolling shutter; the phase follows
    from the stamp, so frames alias as in a real camera (B. Deegan, "LED flicker: Root cause, impact and measurement for
    automotive imaging applications", Electronic Imaging 2018). LED lamps pulse at 90 Hz or more, mains light at 100 or
    120 Hz.

    Guaranteed: the light of each row, where it pulses, is that of the Fourier series of the pulses, within a tenth.
    """

    of: str = param("light", choices=("light", "lamps"), help="all light, or coloured lamps alone")
    frequency_hz: float = param(100.0, low=10.0, high=2000.0, unit="Hz", aspect="fixed", help="of the pulses")
    duty: float = param(0.5, low=0.02, high=0.99, aspect="fixed", help="share of a period in which the light is on")
    depth: float = param(0.3, low=0.01, high=1.0, neutral=0.01, help="share of the light that pulses")
    exposure_ms: float = param(2.0, low=0.05, high=50.0, unit="ms", neutral=50.0, help="exposure of a row")
    readout_ms: float = param(
        30.0, low=0.0, high=200.0, unit="ms", aspect="fixed", help="time between the first row and the last"
    )

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> float:
        """Choose the phase at stamp 0."""
        return float(rng.random())

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Find the phase of the first row by the stamp.

        Raises NotApplicable: no lamp is there, or an exposure of whole periods sees no pulses.
        """
        if self.of == "lamps" and not self._lamps(view).any():
            raise NotApplicable(f"{view.image.topic}: shows no small, bright, coloured lamp")
        periods = view.image.stamp_ns * 1e-9 * self.frequency_hz
        phase = (periods + (float(rng.random()) if state is None else state)) % 1.0
        gain = self._gain(phase, view.picture.size[0])
        if float(np.abs(gain - 1.0).max()) < 0.02:
            raise NotApplicable(
                f"{view.image.topic}: pulses change the light of no row by 2 %: exposure of whole periods"
            )
        return {"phase": phase}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Multiply each row's light."""
        pixels = view.picture.pixels
        new, gain = np.empty_like(pixels), np.round(self._gain(draw["phase"], len(pixels)), 2)
        begins = np.flatnonzero(np.diff(gain, prepend=np.nan))
        for first, end in zip(begins, [*begins[1:], len(gain)], strict=True):
            curve = _times(float(gain[first]), pixels.dtype)
            cv2.LUT(pixels[first:end].reshape(end - first, -1), curve, dst=new[first:end].reshape(end - first, -1))
        return new if self.of == "light" else np.asarray(cv2.copyTo(new, self._lamps(view), pixels.copy()))

    def affected(self, view: View, draw: Draw) -> measures.Mask | None:
        """The lamps, or everything."""
        return None if self.of == "light" else self._lamps(view)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare the light of the rows with the Fourier series of the pulses."""
        if self.of == "lamps":
            row, column = np.nonzero(self._lamps(old))
        else:
            row, column = (i.reshape(-1) for i in np.indices(old.picture.size)[:, :, ::_PROBED_PX])
        luma = (view.picture.luma()[row, column] / view.picture.full_scale for view in (old, new))
        before, after = map(light_of, luma)
        expected = self._series(draw["phase"], old.picture.size[0])
        usable = (before > 0.02) & (before * expected[row] < 0.7) & (before < 0.7)
        sums = [np.bincount(row[usable], light[usable], len(expected)) for light in (before, after)]
        rows = np.flatnonzero(np.bincount(row[usable], minlength=len(expected)) > 3)
        if not len(rows):
            return None
        off = float(np.median(np.abs(sums[1][rows] / sums[0][rows] - expected[rows])))
        return f"the light of rows is off by {off:.2f} from the pulses" if off > 0.1 else None

    def _times(self, phase: float, height: int) -> Floats:
        """Return when the exposure of each row begins, in periods."""
        return phase + np.linspace(0.0, self.readout_ms, height) * 1e-3 * self.frequency_hz

    def _gain(self, phase: float, height: int) -> Floats:
        """Return the factor (H,) of each row's light: the time that pulses are on within the exposure."""
        begin, long = self._times(phase, height), self.exposure_ms * 1e-3 * self.frequency_hz
        on = _time_on(begin + long, self.duty) - _time_on(begin, self.duty)
        return np.asarray(1.0 - self._pulsed + self._pulsed * on / (long * self.duty))

    def _series(self, phase: float, height: int) -> Floats:
        """Return the same by the Fourier series of a pulse train, seen through a window."""
        long = self.exposure_ms * 1e-3 * self.frequency_hz
        middle = self._times(phase, height)[:, None] + long / 2.0 - self.duty / 2.0
        k = np.arange(1, _HARMONICS)
        waves = np.cos(2.0 * np.pi * k * middle) * (2.0 * np.sinc(k * self.duty) * np.sinc(k * long))
        return np.asarray(1.0 + self._pulsed * waves.sum(axis=1))

    @property
    def _pulsed(self) -> float:
        """Share of the light that pulses."""
        return self.depth if self.of == "light" else self.depth * _OWN_LIGHT

    @staticmethod
    def _lamps(view: View) -> measures.Mask:
        """Return a mask (H, W) of small, bright, coloured spots with a margin of a pixel."""
        picture = view.picture
        if picture.order == "mono":
            return np.zeros(picture.size, np.uint8)
        channels = cv2.split(picture.pixels)
        most, least = (np.asarray(f(f(channels[0], channels[1]), channels[2])) for f in (cv2.max, cv2.min))
        bright = cv2.compare(most, _LAMP_LIGHT * picture.full_scale, cv2.CMP_GE)
        blue = channels[picture.channel("b")]  # signals are red, amber or green
        bright = cv2.bitwise_and(bright, cv2.compare(blue, cv2.multiply(most, 0.8), cv2.CMP_LE))
        spots = cv2.bitwise_and(bright, cv2.compare(least, cv2.multiply(most, 1.0 - _LAMP_COLOUR), cv2.CMP_LE))
        _, labels, stats, _ = cv2.connectedComponentsWithStats(spots)
        mask = np.zeros(picture.size, np.uint8)
        for number, (x, y, wide, high, area) in enumerate(stats[1:].tolist(), 1):
            if _LEAST_LAMP_PX <= area <= _LAMP_AREA * mask.size and area >= 0.4 * wide * high:
                around = np.s_[max(0, y - _RING_PX) : y + high + _RING_PX, max(0, x - _RING_PX) : x + wide + _RING_PX]
                own = labels[around] == number
                # A colour fringe at the edge of a bright surface has that beside it.
                if np.quantile(most[around][~own], 0.8) < _RING_LIGHT * picture.full_scale:
                    mask[around] |= own
        return np.asarray(cv2.dilate(mask, np.ones((3, 3), np.uint8)))


@lru_cache(maxsize=256)
def _times(gain: float, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the table of samples whose light is multiplied."""
    return table(lambda values: values_of(light_of(values) * gain), dtype)


def _time_on(at: Floats, duty: float) -> Floats:
    """Return how long a light has been on since 0, all in periods."""
    whole = np.floor(at)
    return np.asarray(whole * duty + np.minimum(at - whole, duty))
