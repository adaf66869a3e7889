# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes and as core types, without ROS.

The ``*_from_msg`` functions read attributes only, so that messages of ``rosbags`` and of ``rclpy`` both do.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.cdr import further_messages
from mt_nodes.data.cdr.further_messages import RADAR_SCAN, RADAR_TRACKS
from mt_nodes.data.cdr.outgoing import outgoing_message
from mt_nodes.data.cdr.point_fields import Field, fields_of, pixel_layout, point_dtype, rows_of
from mt_nodes.data.messages import CameraInfo, Cloud, Image, Message, Wire, WorldMessage
from mt_nodes.data.radar import Radar
from mt_nodes.data.rotations import quaternion_of
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix

POINT_CLOUD = "sensor_msgs/msg/PointCloud2"
IMAGE = "sensor_msgs/msg/Image"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
POLYGON = "geometry_msgs/msg/PolygonStamped"
TF = "tf2_msgs/msg/TFMessage"
STRING = "std_msgs/msg/String"

#: Where the stamp of a message that begins with a header ends, in bytes of its CDR.
_STAMP_END = 12
#: Message type -> the sensor that mutations know it as, unless the topic is a radar's.
SENSOR_OF = {
    POINT_CLOUD: "lidar",
    IMAGE: "camera",
    COMPRESSED_IMAGE: "camera",
    RADAR_SCAN: "radar",
    RADAR_TRACKS: "radar",
}

SENSOR_TYPES = (*SENSOR_OF, CAMERA_INFO)


@lru_cache
def typestore() -> Typestore:
    """Return the message types of ROS 2 Jazzy, with those of ``radar_msgs`` and ``ackermann_msgs``.

    The sensor types have had the same wire format since Foxy.
    """
    store = get_typestore(Stores.ROS2_JAZZY)
    further_messages.register(store)
    return store


def decode(type_name: str, cdr: bytes | memoryview) -> Any:
    """Return a message object of CDR bytes; its arrays are views of the bytes.

    Raises UsageError: the type is not one of ROS 2 Jazzy. InfrastructureError: the bytes are damaged.
    """
    try:
        return typestore().deserialize_cdr(memoryview(cdr), type_name)
    except KeyError:
        raise UsageError(f"message type '{type_name}' is unknown; only types of ROS 2 Jazzy are decoded") from None
    except SerdeError as error:
        raise InfrastructureError(f"damaged message: {error}") from error


def encode(type_name: str, message: Any) -> bytes:
    """Return the little-endian CDR bytes, encapsulation header included, of a message object of ``rosbags``."""
    return bytes(typestore().serialize_cdr(message, type_name, little_endian=True))


def header_stamp_ns(cdr: bytes | memoryview) -> int | None:
    """Return the stamp of a message that begins with a header without decoding it; None of a torn one."""
    if len(cdr) < _STAMP_END:
        return None
    sec, nanosec = struct.unpack_from("<iI" if cdr[1] else ">iI", cdr, 4)
    return int(sec) * 1_000_000_000 + int(nanosec)


def stamp_ns_of(header: Any) -> int:
    """Return the stamp of a ``std_msgs/Header`` in nanoseconds."""
    return int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)


def cloud_from_msg(topic: str, msg: Any) -> Cloud:
    """Return a ``PointCloud2`` as a cloud; no copy is made unless rows are padded.

    Raises UsageError: sizes that do not fit each other, unknown datatypes, no x, y or z.
    """
    step, width, height = int(msg.point_step), int(msg.width), int(msg.height)
    fields = (Field(f.name, int(f.offset), int(f.datatype), int(f.count)) for f in msg.fields)
    dtype = point_dtype(fields, step, bool(msg.is_bigendian), topic)
    rows = rows_of(np.frombuffer(msg.data, np.uint8), height, int(msg.row_step), width * step, topic)
    points = np.ascontiguousarray(rows).reshape(-1).view(dtype)
    return Cloud(topic, stamp_ns_of(msg.header), msg.header.frame_id, points, height, bool(msg.is_dense))


def image_from_msg(topic: str, msg: Any) -> Image:
    """Return an ``Image`` (pixels (H, W) or (H, W, C), row padding left out) or a ``CompressedImage``.

    Raises UsageError: an encoding without whole samples a pixel, sizes that do not fit each other.
    """
    stamp_ns, frame = stamp_ns_of(msg.header), msg.header.frame_id
    if hasattr(msg, "format"):
        return Image(topic, stamp_ns, frame, np.empty((0, 0), np.uint8), msg.format, bytes(msg.data))
    sample, channels = pixel_layout(msg.encoding, topic)
    height, width = int(msg.height), int(msg.width)
    used = width * channels * sample.itemsize
    rows = rows_of(np.frombuffer(msg.data, np.uint8), height, int(msg.step), used, topic)
    if rows.strides[0] % sample.itemsize:  # which NumPy allows and OpenCV does not
        rows = np.ascontiguousarray(rows)
    pixels = rows.view(sample.newbyteorder(">" if msg.is_bigendian else "<"))
    shape = (height, width) if channels == 1 else (height, width, channels)
    return Image(topic, stamp_ns, frame, pixels.reshape(shape), msg.encoding)


def camera_info_from_msg(topic: str, msg: Any) -> CameraInfo:
    """Return a ``CameraInfo`` as intrinsics."""
    d, k, r, p = (np.array(getattr(msg, name), dtype=np.float64) for name in "dkrp")
    size = int(msg.width), int(msg.height)
    matrices = d, k.reshape(3, 3), r.reshape(3, 3), p.reshape(3, 4)
    return CameraInfo(topic, stamp_ns_of(msg.header), msg.header.frame_id, *size, msg.distortion_model, *matrices)


def transforms_from_msg(msg: Any, static: bool) -> list[Transform]:
    """Return the transforms of a ``TFMessage``; leading slashes of frame names (ROS 1) are left out.

    Raises UsageError: a rotation is not a quaternion.
    """
    found = []
    for row in msg.transforms:
        parent, child = row.header.frame_id.lstrip("/"), row.child_frame_id.lstrip("/")
        t, q = row.transform.translation, row.transform.rotation
        try:
            matrix = pose_matrix((t.x, t.y, t.z), (q.x, q.y, q.z, q.w))
        except ValueError as error:
            raise UsageError(f"transform from '{child}' to '{parent}': {error}") from error
        found.append(Transform(parent, child, matrix, stamp_ns_of(row.header), static))
    return found


def polygon_from_msg(msg: Any) -> tuple[str, Floats]:
    """Return frame and corners (N, 3) in metres of a ``PolygonStamped``."""
    corners = [(p.x, p.y, p.z) for p in msg.polygon.points]
    return msg.header.frame_id, np.array(corners, dtype=np.float64).reshape(-1, 3)


def type_of(message: Message) -> str:
    """Return the message type that a decoded message has on the wire."""
    if isinstance(message, Radar):
        return message.type
    if isinstance(message, Cloud):
        return POINT_CLOUD
    if isinstance(message, CameraInfo):
        return CAMERA_INFO
    if isinstance(message, WorldMessage):
        return WORLD_TYPES[message.role]
    return IMAGE if message.compressed is None else COMPRESSED_IMAGE


def encode_cloud(cloud: Cloud) -> bytes:
    """Return the CDR bytes of a ``PointCloud2`` with the very layout of ``cloud.points``, rows without padding."""
    before, size_at = _cloud_frame(cloud.frame_id, cloud.points.dtype, cloud.topic)
    head, width = bytearray(before), cloud.width
    struct.pack_into("<iI", head, _STAMP_AT, *divmod(cloud.stamp_ns, 1_000_000_000))
    struct.pack_into("<II", head, size_at, cloud.height, width)
    struct.pack_into("<I", head, len(head) - 4, width * cloud.points.dtype.itemsize)
    head += struct.pack("<I", cloud.points.nbytes)
    flag = struct.pack("<?", cloud.is_dense)
    outgoing = outgoing_message(cloud.points)
    if outgoing is not None and (message := outgoing.completed(head, flag)) is not None:
        return message
    # Behind the data there is but one flag, and bytes need no alignment: put in here, they are copied only once.
    return b"".join((head, np.ascontiguousarray(cloud.raw).view(np.uint8).data, flag))


#: Seconds and nanoseconds of a header follow the four bytes of the encapsulation.
_STAMP_AT = 4


@lru_cache(maxsize=64)
def _cloud_frame(frame_id: str, layout: np.dtype[np.void], topic: str) -> tuple[bytes, int]:
    """Return what stands before the data of a ``PointCloud2``, and where its height and width begin.

    Clouds of one sensor differ in stamp and size only, so the serializer needs to see but one of them.
    """
    types = typestore().types
    fields, big_endian = fields_of(layout, topic)
    make_field = types["sensor_msgs/msg/PointField"]
    message = types[POINT_CLOUD](
        header=header_of(frame_id, 0),
        height=0,
        width=0,
        fields=[make_field(**vars(f)) for f in fields],
        is_bigendian=big_endian,
        point_step=layout.itemsize,
        row_step=0,
        data=np.empty(0, np.uint8),
        is_dense=True,
    )
    encoded_frame_id = len(frame_id.encode()) + 1
    size_at = _STAMP_AT + 12 + encoded_frame_id + -encoded_frame_id % 4
    return encode(POINT_CLOUD, message)[:-5], size_at


def encode_image(image: Image) -> bytes:
    """Return the CDR bytes of an ``Image``, or of a ``CompressedImage`` when the image is compressed.

    Raises UsageError: the pixels are not what the encoding says.
    """
    if image.compressed is not None:
        data = np.frombuffer(image.compressed, np.uint8)
        make = typestore().types[COMPRESSED_IMAGE]
        return encode(COMPRESSED_IMAGE, make(header=_header(image), format=image.encoding, data=data))
    sample, channels = pixel_layout(image.encoding, image.topic)
    pixels = np.ascontiguousarray(image.pixels)
    got = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.dtype.newbyteorder("=") != sample or got != channels or pixels.ndim not in (2, 3):
        expected = f"(H, W, {channels}) of {sample}"
        raise UsageError(f"{image.topic}: got pixels {pixels.shape} of {pixels.dtype}, {image.encoding} is {expected}")
    big_endian = pixels.dtype.str[0] == ">"
    head = bytearray(
        _image_frame(image.frame_id, image.encoding, pixels.shape[:2], pixels.dtype.itemsize * channels, big_endian)
    )
    struct.pack_into("<iI", head, _STAMP_AT, *divmod(image.stamp_ns, 1_000_000_000))
    struct.pack_into("<I", head, len(head) - 4, pixels.nbytes)
    outgoing = outgoing_message(pixels)
    if outgoing is not None and (message := outgoing.completed(head, b"")) is not None:
        return message
    # Nothing stands behind the data: put in here, they are copied only once.
    return b"".join((head, pixels.reshape(-1).view(np.uint8).data))


@lru_cache(maxsize=64)
def _image_frame(frame_id: str, encoding: str, size: tuple[int, int], pixel_bytes: int, big_endian: bool) -> bytes:
    """Return what stands before the data of an ``Image`` of a size (H, W): those of one camera differ in stamp only."""
    height, width = size
    message = typestore().types[IMAGE](
        header=header_of(frame_id, 0),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=int(big_endian),
        step=width * pixel_bytes if height else 0,
        data=np.empty(0, np.uint8),
    )
    return encode(IMAGE, message)


def encode_camera_info(info: CameraInfo, like: Wire | None = None) -> bytes:
    """Return the CDR bytes of a ``CameraInfo``; binning and region of interest are those of ``like``, or none."""
    types = typestore().types
    original = decode(CAMERA_INFO, like.cdr) if like else None
    no_roi = types["sensor_msgs/msg/RegionOfInterest"](x_offset=0, y_offset=0, height=0, width=0, do_rectify=False)
    message = types[CAMERA_INFO](
        header=_header(info),
        height=info.height,
        width=info.width,
        distortion_model=info.distortion_model,
        **{name: np.ascontiguousarray(getattr(info, name), dtype=np.float64).reshape(-1) for name in "dkrp"},
        binning_x=original.binning_x if original else 0,
        binning_y=original.binning_y if original else 0,
        roi=original.roi if original else no_roi,
    )
    return encode(CAMERA_INFO, message)


def encode_transforms(tree: TransformTree, stamp_ns: int) -> bytes:
    """Return the CDR bytes of a ``TFMessage`` with every transform of the tree, all at one stamp."""
    types, rows = typestore().types, []
    for t in tree.transforms:
        quaternion = dict(zip("xyzw", quaternion_of(t.matrix[:3, :3]), strict=True))
        translation = dict(zip("xyz", t.matrix[:3, 3].tolist(), strict=True))
        pose = types["geometry_msgs/msg/Transform"](
            translation=types["geometry_msgs/msg/Vector3"](**translation),
            rotation=types["geometry_msgs/msg/Quaternion"](**quaternion),
        )
        row = types["geometry_msgs/msg/TransformStamped"]
        rows.append(row(header=header_of(t.parent, stamp_ns), child_frame_id=t.child, transform=pose))
    return encode(TF, types[TF](transforms=rows))


def encode_text(text: str) -> bytes:
    """Return the CDR bytes of a ``std_msgs/String``."""
    return encode(STRING, typestore().types[STRING](data=text))


def header_of(frame_id: str, stamp_ns: int) -> Any:
    """Return a ``std_msgs/Header`` of ``rosbags``."""
    types = typestore().types
    sec, nanosec = divmod(stamp_ns, 1_000_000_000)
    stamp = types["builtin_interfaces/msg/Time"](sec=sec, nanosec=nanosec)
    return types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame_id)


def _header(message: Cloud | Image | CameraInfo) -> Any:
    return header_of(message.frame_id, message.stamp_ns)
