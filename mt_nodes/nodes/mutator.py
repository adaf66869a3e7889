# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes mutator``: derives a follow-up of every cloud on a live topic and publishes it elsewhere.

The input is tapped best effort with depth 1, so that this node can never hold its publisher back.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.timer import Timer
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import String

from mt_nodes import cdr
from mt_nodes.errors import NotApplicable, UsageError
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.ledger import sha256_of_followup
from mt_nodes.nodes import qos
from mt_nodes.nodes.parameters import read_parameters
from mt_nodes.nodes.running import run_node
from mt_nodes.nodes.spinning import SpinningContext, plain_node
from mt_nodes.params import param
from mt_nodes.pipeline import MutationPipeline
from mt_nodes.relations import load_relation, refuse_baseline
from mt_nodes.transforms import TransformTree, load_transforms
from mt_nodes.verdict import SCHEMA, Outcome, Pair

#: How often the graph is asked for a publisher of the input, until there is one.
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class MutatorParameters:
    """What the node is told."""

    relation: str = param("noise_outside_roi_1000", help="whose mutations are applied; name or .yaml file")
    input_topic: str = param("/sensing/lidar/points", help="live cloud topic")
    output_topic: str = param("/mt/followup/sensing/lidar/points", help="where follow-ups go")
    output_domain: int = param(-1, low=-1, high=232, help="ROS domain of the follow-ups; -1: this one")
    depth: int = param(5, low=1, high=1000, help="history depth of the follow-ups (a remote depth cannot be seen)")
    prove: str = param(
        "after",
        choices=("after", "before"),
        help="after: send, then prove, a broken pair is INVALID; before: nothing unproven is sent, a little later",
    )
    seed: int = param(0, low=0, high=2**31 - 1, help="what every draw depends on")
    transforms: str = param("", help="YAML file of transforms, for regions in another frame than the cloud's")


class Mutator(Node):
    """Publishes the follow-up, and on /mt/ledger what it was made of, for the monitor."""

    def __init__(self) -> None:
        super().__init__("mutator")
        given = read_parameters(self, MutatorParameters)
        self._given = given
        if given.output_domain == -1 and given.output_topic == given.input_topic:
            raise UsageError("mutator: output_topic is input_topic; set another topic or output_domain")
        self._relation = load_relation(given.relation)
        refuse_baseline(self._relation, "mutator")
        self._pipeline = MutationPipeline(self._relation.mutate, given.seed, self._relation.id)
        self._tree = load_transforms(Path(given.transforms)) if given.transforms else TransformTree()
        self._far = SpinningContext(given.output_domain) if given.output_domain != -1 else None
        self._out: Node = self if self._far is None else self._far.add(plain_node, "mt_mutator")
        self._followups: Publisher | None = None
        #: What is still to go out, in order, and when; the timer is set on the first of it.
        self._later: deque[tuple[int, Cloud]] = deque()
        self._timer: Timer | None = None
        self._looking = self.create_timer(LOOK_EVERY_S, self._look)
        self._ledger = self.create_publisher(String, "/mt/ledger", qos.JOURNAL)
        self._count = 0
        self.create_subscription(PointCloud2, given.input_topic, self._received, qos.LIVE_TAP, raw=True)

    def destroy_node(self) -> None:
        """Leave the other domain, too."""
        if self._far is not None:
            self._far.close()
        super().destroy_node()

    def _received(self, data: bytes) -> None:
        # Serialized in and out: what rclpy would copy on the way costs more than the mutation itself.
        cloud = cdr.cloud_from_msg(self._given.input_topic, cdr.decode(cdr.POINT_CLOUD, data))
        bundle = Bundle(0, self._count, cloud.stamp_ns, clouds=(cloud,), transforms=self._tree)
        self._pipeline.meet(bundle)
        self._count += 1
        publisher = self._publisher()
        if not publisher.get_subscription_count():
            # An answer that cannot come must not be missed: what nobody hears is no follow-up.
            self._not_judged(bundle, Outcome.SKIPPED, f"nobody subscribes to {self._given.output_topic}")
            return
        try:
            derived, proof = self._pipeline.derive_unproven(bundle)
        except NotApplicable as why:
            self._not_judged(bundle, Outcome.NOT_APPLICABLE, str(why))
            return
        if self._given.prove == "before" and (broken := proof()):
            self._not_judged(bundle, Outcome.INVALID, broken)
            return
        now_ns = self.get_clock().now().nanoseconds
        self._later.extend((now_ns + delay_ns, sent.clouds[0]) for delay_ns, sent in derived.followup.bundles)
        self._send_due(now_ns)
        # The follow-up is on its way: what its verdict needs can now take its time.
        if self._given.prove == "after" and (broken := proof()):
            self._not_judged(bundle, Outcome.INVALID, broken)
            return
        if not derived.followup.bundles:
            self._tell(bundle, outcome=Outcome.SKIPPED.value, reason="the follow-up sends nothing")
            return
        delay_ns, first = derived.followup.bundles[0]
        answers = {"followup_ns": first.clouds[0].stamp_ns, "delay_ns": delay_ns}
        about = {"effects": derived.effects.as_plain(), "sha256": sha256_of_followup(derived.followup)}
        self._tell(bundle, **answers, **about)

    def _send_due(self, now_ns: int) -> None:
        """Publish what is due, in order, and set the timer on what is next: a topic is a queue."""
        if self._timer is not None:
            self._timer.destroy()
            self._timer = None
        while self._later and self._later[0][0] <= now_ns:
            self._publisher().publish(cdr.encode_cloud(self._later.popleft()[1]))
        if self._later:
            left_s = (self._later[0][0] - now_ns) / 1e9
            self._timer = self.create_timer(left_s, lambda: self._send_due(self.get_clock().now().nanoseconds))

    def _not_judged(self, bundle: Bundle, outcome: Outcome, reason: str) -> None:
        """Tell of a pair that is not to be judged, so that it is accounted for all the same."""
        log = self.get_logger()
        text = f"bundle {bundle.index} is {outcome.value}: {reason}"
        if outcome is Outcome.INVALID:
            log.error(text)
        else:
            log.warning(text, throttle_duration_sec=5.0)
        self._tell(bundle, outcome=outcome.value, reason=reason)

    def _tell(self, bundle: Bundle, **what: Any) -> None:
        line = {
            "schema": SCHEMA,
            "type": "followup",
            "pair": str(Pair(0, bundle.index, self._relation.id)),
            "relation": self._relation.id,
            "stamp_ns": bundle.stamp_ns,
        }
        self._ledger.publish(String(data=json.dumps(line | what)))

    def _look(self) -> None:
        """Make the publisher as soon as there is an input, so that subscribers find it before the first follow-up."""
        if self.count_publishers(self._given.input_topic):
            self._publisher()

    def _publisher(self) -> Publisher:
        """Make the publisher when it shows what the input's own publisher offers."""
        if self._followups is None:
            self._looking.cancel()
            offered = self.get_publishers_info_by_topic(self._given.input_topic)
            profile = QoSProfile(
                depth=self._given.depth,
                reliability=offered[0].qos_profile.reliability if offered else qos.REPLAY.reliability,
                durability=offered[0].qos_profile.durability if offered else qos.REPLAY.durability,
            )
            self._followups = self._out.create_publisher(PointCloud2, self._given.output_topic, profile)
        return self._followups


def main(args: list[str] | None = None) -> None:
    """Mutate until stopped."""
    run_node(Mutator, args)


if __name__ == "__main__":
    main()
