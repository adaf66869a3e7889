# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes monitor``: judges the outputs of two arms while they run, paired by stamp."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from mt_nodes.checks.sequence import SequenceCheck
from mt_nodes.effects import Effects
from mt_nodes.engine import Answer, Engine, Heard, Offer
from mt_nodes.errors import UsageError
from mt_nodes.frames import Bundle
from mt_nodes.nodes import qos
from mt_nodes.nodes.listening import OutputListener
from mt_nodes.nodes.managed import ManagedNode, ManagedParameters
from mt_nodes.nodes.running import run_node
from mt_nodes.nodes.spinning import SpinningContext, plain_node
from mt_nodes.outputs import Output
from mt_nodes.params import param
from mt_nodes.relations import Relation, load_relation, refuse_baseline
from mt_nodes.stacks import load_stack
from mt_nodes.transforms import TransformTree, load_transforms
from mt_nodes.verdict import Outcome, Pair, Verdict

#: Outputs kept while the ledger line that asks for them may still come.
KEPT = 200


@dataclass(frozen=True)
class MonitorParameters(ManagedParameters):
    """What the node is told."""

    relation: str = param("noise_outside_roi_1000", help="what is judged; name or .yaml file")
    stack: str = param("reference_detector", help="whose outputs are heard; name or .yaml file")
    source_domain: int = param(-1, low=-1, high=232, help="ROS domain of the source arm; -1: this one")
    followup_domain: int = param(-1, low=-1, high=232, help="ROS domain of the follow-up arm; -1: this one")
    source_prefix: str = param("", help="put before the source arm's topics")
    followup_prefix: str = param("", help="put before the follow-up arm's topics")
    transforms: str = param("", help="YAML file of transforms, for regions in another frame than the outputs'")


class Outputs:
    """The last outputs of one arm by stamp: it has the ``put`` that a listener calls."""

    def __init__(self) -> None:
        self._by_stamp: dict[int, dict[str, Any]] = {}
        self._first_ns: int | None = None

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Keep an output; one without a stamp cannot be paired in real time and is left out."""
        if stamp_ns is None:
            return
        self._first_ns = stamp_ns if self._first_ns is None else min(self._first_ns, stamp_ns)
        self._by_stamp.setdefault(stamp_ns, {})[role] = payload.said
        while len(self._by_stamp) > KEPT:
            del self._by_stamp[next(iter(self._by_stamp))]

    def living(self, stamp_ns: int) -> bool:
        """Whether the arm had been heard by then; before, its silence may be that nobody had found anybody yet."""
        return self._first_ns is not None and self._first_ns <= stamp_ns

    def answer(self, stamp_ns: int, roles: tuple[str, ...], reason: str) -> Answer:
        """Return what was said of an instant, silence when not everything was."""
        said = self._by_stamp.get(stamp_ns, {})
        if set(roles) <= set(said):
            return Answer(Heard.ANSWERED, Output(**said))
        return Answer.nothing(Heard.SILENT, reason)


class Monitor(ManagedNode):
    """Hears the ledger and both arms; publishes /mt/verdicts when both have answered or the deadline has passed."""

    def __init__(self) -> None:
        super().__init__("monitor")
        self._given = self.parameters(MonitorParameters)
        self.begin()

    def open(self) -> None:
        """Listen to the ledger and to both arms."""
        given = self._given
        self._stack = load_stack(given.stack)
        self._relation: Relation = load_relation(given.relation)
        refuse_baseline(self._relation, "monitor")
        if self._relation.check is None:
            raise UsageError(f"monitor: relation '{self._relation.id}' has no check of its own")
        if isinstance(self._relation.check, SequenceCheck):
            raise UsageError(
                f"monitor: relation '{self._relation.id}' judges whole episodes, and this node knows no end of them; "
                "use `mt replay` or `mt live`"
            )
        self._tree = load_transforms(Path(given.transforms)) if given.transforms else TransformTree()
        self._contexts: list[SpinningContext] = []
        self._arms = (
            self._listen("source", given.source_domain, given.source_prefix),
            self._listen("followup", given.followup_domain, given.followup_prefix),
        )
        self._pending: deque[tuple[float, dict[str, Any]]] = deque()
        self._verdicts = self.create_publisher(String, "/mt/verdicts", qos.JOURNAL)
        self.create_subscription(String, "/mt/ledger", self._offered, qos.JOURNAL)
        self.create_timer(0.02, self._judge_due)

    def close(self) -> None:
        """Leave the arms' domains, too."""
        for context in self._contexts:
            context.close()

    def _listen(self, arm: str, domain: int, prefix: str) -> Outputs:
        node: Node = self
        if domain != -1:
            self._contexts.append(SpinningContext(domain))
            node = self._contexts[-1].add(plain_node, f"mt_monitor_{arm}")
        outputs = Outputs()
        listener = OutputListener(
            node, self._stack.outputs, lambda topic: prefix + topic, outputs, within_ns=self._stack.sync_ns
        )
        self.create_timer(1.0, listener.heard_from)
        return outputs

    def _offered(self, message: String) -> None:
        line = json.loads(message.data)
        # The ledger of a replay in this domain has no stamp_ns: its pairs are judged by the replay itself.
        if self.active and line["relation"] == self._relation.id and "stamp_ns" in line:
            deadline_s = self._stack.deadline_s + line.get("delay_ns", 0) / 1e9
            self._pending.append((time.monotonic() + deadline_s, line))

    def _judge_due(self) -> None:
        while self._pending:
            deadline, line = self._pending[0]
            reason = f"no answer within {self._stack.deadline_s:g} s"
            stamps = (line["stamp_ns"], line.get("followup_ns", line["stamp_ns"]))
            answers = tuple(
                arm.answer(stamp_ns, self._stack.answers, reason)
                for arm, stamp_ns in zip(self._arms, stamps, strict=True)
            )
            waiting = "outcome" not in line and any(a.heard is Heard.SILENT for a in answers)
            if waiting and time.monotonic() < deadline:
                return
            self._pending.popleft()
            for verdict in self._judged(line, (answers[0], answers[1])):
                self._verdicts.publish(String(data=json.dumps(verdict.as_plain())))

    def _judged(self, line: dict[str, Any], answers: tuple[Answer, Answer]) -> list[Verdict]:
        pair = Pair.parse(line["pair"])
        bundle = Bundle(pair.episode, pair.bundle or 0, line["stamp_ns"], transforms=self._tree)
        offer = Offer(self._relation, (self._relation,))
        engine = Engine(self._stack.publishes_when_empty and self._arms[1].living(line["stamp_ns"]))
        if "outcome" in line:
            return engine.without_followup(offer, bundle, Outcome(line["outcome"]), line["reason"])
        return engine.judge(offer, bundle, answers, Effects.from_plain(line["effects"]))


def main(args: list[str] | None = None) -> None:
    """Judge until stopped."""
    run_node(Monitor, args)


if __name__ == "__main__":
    main()
