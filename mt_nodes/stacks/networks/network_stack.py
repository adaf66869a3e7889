# SPDX-License-Identifier: Apache-2.0
"""A network in a file as a stack: a picture or a cloud in, boxes, obstacles or a command out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import radians
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.network_file import NetworkFile, load_network
from mt_nodes.base.params import build, param
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output
from mt_nodes.stacks.networks.cloud_decoders import CLOUD_DECODERS, Anchor
from mt_nodes.stacks.networks.cloud_form import CloudForm
from mt_nodes.stacks.networks.picture_decoders import PICTURE_DECODERS
from mt_nodes.stacks.networks.picture_form import PictureForm

#: The name of a network that says how to steer.
STEERING = "steering"
_DECIMALS = 6
#: Networks of 16 bits say probabilities a little above 1.
_ROUNDING = 0.01


@dataclass(frozen=True)
class SteeringForm:
    """What the numbers of a driving network mean."""

    unit: str = param("rad", choices=("rad", "deg", "share"), help="of the steering; share: of full_lock_deg")
    full_lock_deg: float = param(25.0, low=1.0, high=90.0, unit="deg", help="of the road wheels, for share")
    ratio: float = param(
        1.0, low=0.1, high=50.0, help="what is said is divided by: of the steering wheel to the road wheels"
    )
    positive: str = param("left", choices=("left", "right"), help="which way a positive number steers")
    steering: int = param(0, low=0, high=100, help="place of the steering in what the network says")
    speed: int = param(-1, low=-1, high=100, help="place of the speed, m/s; -1: it says none")


def _as_it_is(value: Any, where: str) -> Any:
    """Forms are built before, with the values that are usual for an output."""
    return value


def _anchors(value: Any, where: str) -> tuple[Anchor, ...]:
    if not isinstance(value, (list, tuple)):
        raise UsageError(
            f"{where}: got {value!r}, expected a list such as [{{size_m: [3.9, 1.6, 1.56], bottom_m: -1.78}}]"
        )
    return tuple(row if isinstance(row, Anchor) else build(Anchor, row, f"{where}[{i}]") for i, row in enumerate(value))


@dataclass(frozen=True, eq=False)
class NetworkStack:
    """What networks of all kinds have in common.

    ``file``: of the network. ``kind``: ``onnx`` or ``torchscript``. ``output``: name of what it says.
    """

    file: str = param("")
    kind: str = param("onnx", choices=("onnx", "torchscript"))
    output: str = param("")

    @cached_property
    def _network(self) -> NetworkFile:
        return load_network(self.file, self.kind)

    def _names(self, kind: Ints, labels: tuple[str, ...]) -> list[str]:
        """Return the labels of classes (M,), their numbers where there are no labels."""
        if labels and (beyond := kind[(kind < 0) | (kind >= len(labels))]).size:
            text = f"got the class {beyond[0]}, expected 0 to {len(labels) - 1}, as labels name {len(labels)}"
            hint = "name all of its classes, and where it counts from 1 begin with background"
            raise self._output_error(UsageError(f"{text}: {hint}"))
        return [labels[i] if labels else str(i) for i in kind.tolist()]

    def _probable(self, score: Floats) -> Floats:
        """Return scores (M,) up to 1, without what rounding has put beyond."""
        if score.size and score.max() > 1.0 + _ROUNDING:
            text = f"got the score {score.max():g}, expected 0 to 1: it is of another family, or says logits"
            raise self._output_error(UsageError(text))
        return np.asarray(score.clip(0.0, 1.0))

    def _output_error(self, error: UsageError) -> InfrastructureError:
        return InfrastructureError(f"network {self.file}, read as {self.output}: {error}")


@dataclass(frozen=True, eq=False)
class CameraNetwork(NetworkStack):
    """Boxes in a picture."""

    picture: PictureForm = param(PictureForm(), convert=_as_it_is)
    labels: tuple[str, ...] = param((), help="of the classes, in the network's order; without them they are numbers")
    score: float = param(0.25, low=0.0, high=1.0, help="boxes of a lower score are dropped")
    overlap: float = param(0.45, low=0.0, high=1.0, help="of two boxes of a class that share more, the better stays")

    def __call__(self, image: npt.NDArray[np.uint8]) -> ImageBoxes:
        """Return the boxes in a picture (H, W, 3) uint8 of red, green, blue."""
        port = next(iter(self._network.inputs), None)
        size = self.picture.size_of(port, (image.shape[1], image.shape[0]), f"network {self.file}")
        tensor, placed = self.picture.tensor(image, size)
        decode, _ = PICTURE_DECODERS[self.output]
        try:
            edges, score, kind = decode(self._network([tensor]), size, len(self.labels))
        except UsageError as error:
            raise self._output_error(error) from error
        return self._boxes(placed.back(edges), score, kind, image.shape[:2])

    def _boxes(self, edges: Floats, score: Floats, kind: Ints, shape: tuple[int, ...]) -> ImageBoxes:
        height, width = shape[:2]
        edges = np.clip(edges, -0.5, np.array([width, height, width, height]) - 0.5)
        good = np.isfinite(edges).all(axis=1) & (score >= self.score) & (edges[:, 2:] > edges[:, :2]).all(axis=1)
        edges, score, kind = edges[good], self._probable(score[good]), kind[good]
        rows = _suppressed(edges, score, kind, self.score, self.overlap)
        names = self._names(kind[rows], self.labels)
        return ImageBoxes.make("", None, edges[rows], names, np.round(score[rows], _DECIMALS))


@dataclass(frozen=True, eq=False)
class LidarNetwork(NetworkStack):
    """Obstacles in a cloud, in the frame of the cloud that it is given."""

    cloud: CloudForm = param(CloudForm(), convert=_as_it_is)
    anchors: tuple[Anchor, ...] = param((), convert=_anchors, help="of pointpillars, in the network's order")
    sizes: str = param(
        "lwh",
        choices=("lwh", "wlh"),
        help="length, width, height and the yaw; or width, length, height and an angle of -90 degrees - yaw, as "
        "tianweiy/CenterPoint says them for nuScenes, and mmdetection3d before 1.0",
    )
    labels: tuple[str, ...] = param((), help="of the classes, in the network's order; without them they are numbers")
    score: float = param(0.1, low=0.0, high=1.0, help="obstacles of a lower score are dropped")
    overlap: float = param(
        0.1, low=0.0, high=1.0, help="of two obstacles that share more of the ground, the better stays"
    )

    def __call__(self, points: Singles) -> Detections:
        """Return the obstacles among points (N, 4) x, y, z, intensity."""
        try:
            outputs = self._network(self.cloud.tensors(points, self._network.inputs))
            boxes, score, kind = CLOUD_DECODERS[self.output](outputs, self.cloud, self.anchors)
        except UsageError as error:
            raise self._output_error(error) from error
        if self.sizes == "wlh":
            boxes = np.column_stack([boxes[:, [0, 1, 2, 4, 3, 5]], -np.pi / 2 - boxes[:, 6]])
        good = np.isfinite(boxes).all(axis=1) & (score >= self.score) & (boxes[:, 3:6] > 0.0).all(axis=1)
        boxes, score, kind = boxes[good], self._probable(score[good]), kind[good]
        rows = _suppressed_from_above(boxes, score, self.overlap)
        boxes, names = boxes[rows], self._names(kind[rows], self.labels)
        return Detections.make(
            "", None, boxes[:, :3], boxes[:, 3:6], boxes[:, 6], names, np.round(score[rows], _DECIMALS)
        )


@dataclass(frozen=True, eq=False)
class SteeringNetwork(NetworkStack):
    """A command made of a picture."""

    picture: PictureForm = param(PictureForm(), convert=_as_it_is)
    steering: SteeringForm = param(SteeringForm(), convert=_as_it_is)

    def __call__(self, image: npt.NDArray[np.uint8]) -> Output:
        """Return the command for a picture (H, W, 3) uint8 of red, green, blue."""
        port, form = next(iter(self._network.inputs), None), self.steering
        size = self.picture.size_of(port, (image.shape[1], image.shape[0]), f"network {self.file}")
        tensor, _ = self.picture.tensor(image, size)
        numbers = np.concatenate([np.ravel(part) for part in self._network([tensor]).values()]).astype(np.float64)
        if max(form.steering, form.speed) >= len(numbers):
            raise InfrastructureError(
                f"network {self.file}: says {len(numbers)} numbers, expected that of steering and speed"
            )
        scale = {"rad": 1.0, "deg": radians(1.0), "share": radians(form.full_lock_deg)}[form.unit] / form.ratio
        angle = float(numbers[form.steering]) * scale * (1.0 if form.positive == "left" else -1.0)
        speed = float(numbers[form.speed]) if form.speed >= 0 else float("nan")
        return Output(control=Control(None, round(angle, _DECIMALS), round(speed, _DECIMALS)))


def network_stack(file: str, kind: str, output: str = "", **params: Any) -> NetworkStack:
    """Make the stack of a network's file.

    ``file``: path. ``kind``: ``onnx`` or ``torchscript``. ``output``: what it says, by name. params: the rest of
    ``network`` of a stack file.
    Raises UsageError: there is no such output or parameter, or the file cannot be read.
    """
    cls, forms = _kind_of(output)
    built = {name: _built(form, params.get(name), f"network.{name}", usual) for name, (form, usual) in forms.items()}
    stack: NetworkStack = build(cls, {"file": file, "kind": kind, "output": output, **params, **built}, "network")
    _ = stack._network  # what is wrong with the file is said when the stack starts, not at its first message
    return stack


def roles_of(output: str) -> tuple[str, Any]:
    """Return the role of the input of a network that says this, and ``outputs`` of its stack file.

    Raises UsageError: there is no such output.
    """
    cls, _ = _kind_of(output)
    if cls is LidarNetwork:
        return "lidar", "detections"
    return "camera", "boxes" if cls is CameraNetwork else {"control": {"type": "sensor_msgs/msg/JointState"}}


def _kind_of(output: str) -> tuple[type[NetworkStack], dict[str, tuple[type, dict[str, Any]]]]:
    """Return what a network that says this is, and its forms: parameter -> class and usual values."""
    if output in PICTURE_DECODERS:
        return CameraNetwork, {"picture": (PictureForm, PICTURE_DECODERS[output][1])}
    if output in CLOUD_DECODERS:
        return LidarNetwork, {"cloud": (CloudForm, {})}
    if output == STEERING:
        return SteeringNetwork, {"picture": (PictureForm, {}), "steering": (SteeringForm, {})}
    known = ", ".join((*PICTURE_DECODERS, *CLOUD_DECODERS, STEERING))
    raise UsageError(f"network.output: got {output!r}, expected one of {known}")


def _built(form: type, given: Any, where: str, usual: Mapping[str, Any]) -> Any:
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"{where}: got {given!r}, expected a mapping")
    return build(form, {**usual, **(given or {})}, where)


def _suppressed(edges: Floats, score: Floats, kind: Ints, least: float, overlap: float) -> Ints:
    """Return the rows that stay, the best first: OpenCV's non-maximum suppression within each class."""
    if not len(edges):
        return np.empty(0, dtype=np.int64)
    corner_and_size = np.concatenate([edges[:, :2], edges[:, 2:] - edges[:, :2]], axis=1)
    rows = cv2.dnn.NMSBoxesBatched(corner_and_size.tolist(), score.tolist(), kind.tolist(), 0.0, overlap)
    best = np.asarray(rows, dtype=np.int64).reshape(-1)
    return best[np.lexsort((best, -score[best]))]


def _suppressed_from_above(boxes: Floats, score: Floats, overlap: float) -> Ints:
    """Return the rows that stay, the best first: what stands on the ground of a better one goes, whatever its class."""
    if not len(boxes):
        return np.empty(0, dtype=np.int64)
    turned = [((x, y), (length, width), np.degrees(yaw)) for x, y, _, length, width, _, yaw in boxes.tolist()]
    rows = cv2.dnn.NMSBoxesRotated(turned, score.tolist(), 0.0, overlap)
    best = np.asarray(rows, dtype=np.int64).reshape(-1)
    return best[np.lexsort((best, -score[best]))]
