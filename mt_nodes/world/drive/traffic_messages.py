# SPDX-License-Identifier: Apache-2.0
"""Messages of scenario_simulator_v2's interface to simulators, as far as we use it.

Names and numbers of fields are those of ``simulation_interface/proto/simulation_api_schema.proto`` and
``traffic_simulator_msgs.proto`` (github.com/tier4/scenario_simulator_v2, 63ccb1d of May 2026), which is all that
matters on the wire. Fields that are missing here are not sent, and ignored on receipt.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mt_nodes.base.errors import needs_extra

PACKAGE = "mt_nodes"
EGO, VEHICLE, PEDESTRIAN, MISC_OBJECT = range(4)
"""``EntityType``."""
UNKNOWN, CAR, TRUCK, BUS, TRAILER, MOTORCYCLE, BICYCLE, ON_FOOT = range(8)
"""``EntitySubtype``."""
COLOURS = {"red": 0, "yellow": 1, "green": 2}
"""``TrafficLight.Color``; shape 0 is a circle, status 1 shines steadily."""
CIRCLE, SHINES = 0, 1

_RESULT = "Result result 1"
#: Message -> its fields: type, name, number; a star marks several. An enumeration is an int32 on the wire.
_FIELDS = {
    "Time": "int32 sec 1, uint32 nanosec 2",
    "Point": "double x 1, double y 2, double z 3",
    "Quaternion": "double x 1, double y 2, double z 3, double w 4",
    "Pose": "Point position 1, Quaternion orientation 2",
    "Twist": "Point linear 1, Point angular 2",
    "ActionStatus": "string current_action 1, Twist twist 2, Twist accel 3, double linear_jerk 4",
    "BoundingBox": "Point center 1, Point dimensions 2",
    "EntityType": "int32 type 1",
    "EntitySubtype": "int32 value 1",
    "Performance": "double max_speed 1, double max_acceleration 2, double max_acceleration_rate 3, "
    "double max_deceleration 4, double max_deceleration_rate 5",
    "Axle": "double max_steering 1, double wheel_diameter 2, double track_width 3, double position_x 4, "
    "double position_z 5",
    "Axles": "Axle front_axle 1, Axle rear_axle 2",
    "VehicleParameters": "string name 1, Performance performance 2, BoundingBox bounding_box 3, Axles axles 4",
    "Parameters": "string name 1, BoundingBox bounding_box 2",
    "EntityStatus": "EntityType type 1, EntitySubtype subtype 2, double time 3, string name 4, "
    "ActionStatus action_status 5, Pose pose 6",
    "UpdatedEntityStatus": "string name 1, ActionStatus action_status 2, Pose pose 3",
    "TrafficLight": "int32 color 1, int32 shape 2, int32 status 3, float confidence 4",
    "TrafficSignal": "int32 id 1, TrafficLight* traffic_light_status 2, int32* relation_ids 3",
    "Result": "bool success 1, string description 2",
    "InitializeRequest": "double realtime_factor 1, double step_time 2, double initialize_time 3, "
    "Time initialize_ros_time 4, string lanelet2_map_path 5",
    "UpdateFrameRequest": "double current_simulation_time 1, double current_scenario_time 2, Time current_ros_time 3",
    "SpawnVehicleEntityRequest": "VehicleParameters parameters 1, bool is_ego 2, string asset_key 3, Pose pose 4, "
    "double initial_speed 5",
    "SpawnEntityRequest": "Parameters parameters 1, string asset_key 2, Pose pose 3",
    "DespawnEntityRequest": "string name 1",
    "UpdateEntityStatusRequest": "EntityStatus* status 1, bool npc_logic_started 2, bool overwrite_ego_status 3",
    "UpdateTrafficLightsRequest": "TrafficSignal* states 1",
    "Response": _RESULT,
    "UpdateEntityStatusResponse": f"{_RESULT}, UpdatedEntityStatus* status 2",
}
#: Requests: field of both envelopes -> its number, the request's message; answers are plain unless named below.
REQUESTS = {
    "initialize": (1, "InitializeRequest"),
    "update_frame": (2, "UpdateFrameRequest"),
    "spawn_vehicle_entity": (3, "SpawnVehicleEntityRequest"),
    "spawn_pedestrian_entity": (4, "SpawnEntityRequest"),
    "spawn_misc_object_entity": (5, "SpawnEntityRequest"),
    "despawn_entity": (6, "DespawnEntityRequest"),
    "update_entity_status": (7, "UpdateEntityStatusRequest"),
    "update_traffic_lights": (11, "UpdateTrafficLightsRequest"),
}
_ANSWERS = {"update_entity_status": "UpdateEntityStatusResponse"}


def message(name: str) -> Any:
    """Return the class of a message, an envelope (``SimulationRequest``, ``SimulationResponse``) among them.

    Raises UsageError: protobuf is not installed.
    """
    return _classes()[name]


@lru_cache
def _classes() -> dict[str, Any]:
    with needs_extra("awsim", "this simulator needs protobuf"):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    file = descriptor_pb2.FileDescriptorProto(name="mt_nodes/traffic.proto", package=PACKAGE, syntax="proto3")
    envelopes = {
        "SimulationRequest": {field: (number, kind) for field, (number, kind) in REQUESTS.items()},
        "SimulationResponse": {f: (number, _ANSWERS.get(f, "Response")) for f, (number, _) in REQUESTS.items()},
    }
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for kind, field, digits in (text.split() for text in fields.split(", ")):
            _add(message, kind, field, int(digits))
    for name, cases in envelopes.items():
        message = file.message_type.add(name=name)
        message.oneof_decl.add(name="what")
        for field, (number, kind) in cases.items():
            _add(message, kind, field, number).oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = {name: pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in (*_FIELDS, *envelopes)}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


def _add(message: Any, kind: str, field: str, number: int) -> Any:
    """Add a field to a message's description."""
    repeated, kind = kind.endswith("*"), kind.rstrip("*")
    row = message.field.add(name=field, number=number, label=3 if repeated else 1)
    if kind in _FIELDS:
        row.type, row.type_name = row.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        row.type = getattr(row, f"TYPE_{kind.upper()}")
    return row
