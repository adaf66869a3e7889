# SPDX-License-Identifier: Apache-2.0
"""Messages of radars as bytes and as detections: ``PointCloud2``, and ``RadarScan`` and ``RadarTracks``."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.further_messages import COVARIANCES, RADAR_SCAN, RADAR_TRACKS, RETURN, TRACK, TRACK_TYPE, VECTORS
from mt_nodes.data.radar import Radar, radar_of


def radar_from_msg(topic: str, msg: Any) -> Radar:
    """Return the detections of a radar's ``PointCloud2``, ``RadarScan`` or ``RadarTracks``.

    Raises:
        UsageError: as of :func:`~mt_nodes.data.cdr.codec.cloud_from_msg`, or a ``PointCloud2`` without Doppler speeds.
    """
    if hasattr(msg, "returns"):
        points, kind = _points_of_scan(msg), RADAR_SCAN
    elif hasattr(msg, "tracks"):
        points, kind = _points_of_tracks(msg), RADAR_TRACKS
    else:
        return radar_of(codec.cloud_from_msg(topic, msg))
    return Radar(topic, codec.stamp_ns_of(msg.header), msg.header.frame_id, points, type=kind)


def encode_radar(radar: Radar) -> bytes:
    """Return the CDR bytes of a radar's message, of the type that it has."""
    if radar.type == RADAR_SCAN:
        return _encode_scan(radar)
    if radar.type == RADAR_TRACKS:
        header = codec.header_of(radar.frame_id, radar.stamp_ns)
        return codec.encode(RADAR_TRACKS, _tracks_message(codec.typestore().types, header, radar))
    return codec.encode_cloud(radar)


def _points_of_scan(msg: Any) -> npt.NDArray[Any]:
    """Return the detections (N,) of a ``RadarScan``, in layout :data:`RETURN`."""
    return np.array([tuple(getattr(each, name) for name in RETURN.names or ()) for each in msg.returns], dtype=RETURN)


def _points_of_tracks(msg: Any) -> npt.NDArray[Any]:
    """Return the tracks (N,) of a ``RadarTracks``, in layout :data:`TRACK`."""
    points = np.zeros(len(msg.tracks), dtype=TRACK)
    for point, track in zip(points, msg.tracks, strict=True):
        vectors = (track.position, *(getattr(track, name) for name in VECTORS))
        numbers = [value for v in vectors for value in (v.x, v.y, v.z)]
        for name, value in zip((TRACK.names or ())[1:13], numbers, strict=True):
            point[name] = value
        point["uuid"], point["classification"] = np.asarray(track.uuid.uuid, np.uint8), track.classification
        for name in COVARIANCES:
            point[name] = getattr(track, name)
    return points


def _encode_scan(radar: Radar) -> bytes:
    """Return the CDR bytes (little-endian, encapsulation header included) of a ``RadarScan``."""
    frame = radar.frame_id.encode() + b"\0"
    head = struct.pack("<4BiII", 0, 1, 0, 0, *divmod(radar.stamp_ns, 1_000_000_000), len(frame)) + frame
    head += b"\0" * (-len(head) % 4)
    return head + struct.pack("<I", len(radar)) + np.ascontiguousarray(radar.points).tobytes()


def _tracks_message(types: Any, header: Any, radar: Radar) -> Any:
    """Return the ``RadarTracks`` message of ``rosbags``."""
    vector, rows = types["geometry_msgs/msg/Vector3"], []
    for point in radar.points:
        numbers = [float(point[name]) for name in (TRACK.names or ())[1:13]]
        position, *vectors = (numbers[i : i + 3] for i in range(0, 12, 3))
        rows.append(
            types[TRACK_TYPE](
                uuid=types["unique_identifier_msgs/msg/UUID"](uuid=point["uuid"].copy()),
                position=types["geometry_msgs/msg/Point"](**dict(zip("xyz", position, strict=True))),
                classification=int(point["classification"]),
                **{n: vector(**dict(zip("xyz", v, strict=True))) for n, v in zip(VECTORS, vectors, strict=True)},
                **{name: np.ascontiguousarray(point[name]) for name in COVARIANCES},
            )
        )
    return types[RADAR_TRACKS](header=header, tracks=rows)
