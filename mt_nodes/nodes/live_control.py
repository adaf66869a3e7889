# SPDX-License-Identifier: Apache-2.0
"""The node by which a run beside a live stack is told what to do: services, parameters, a life cycle.

All three say the same to :class:`mt_nodes.runs.live.commands.Commands`: ``~/start`` activates the node and activating
it begins or goes on; ``~/pause`` and deactivating pause; ``~/stop`` and shutting down end the run in good order.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.context import Context
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from mt_nodes.base.params import plain
from mt_nodes.nodes.clock_echo import ClockPings
from mt_nodes.nodes.managed_node import TidyLifecycleNode
from mt_nodes.nodes.parameters import descriptor
from mt_nodes.runs.live.commands import CHANGEABLE, Commands, Reply, RunState
from mt_nodes.runs.live.config import PARTS, LiveConfig

NAME = "mt_live"
RELATIONS = "relations"
#: service -> what it does; the documentation's table is made from this.
SERVICES = {
    "start": "begin to test, or go on",
    "pause": "test nothing; an instance that remembers gets the source, to stay in step",
    "stop": "end the run: what is on its way is judged, then the summary is written",
    "status": "tell as JSON what the run does, its relations, parameters, outcomes so far and clock offsets",
}


class LiveControl(TidyLifecycleNode):
    """Services ``start``, ``pause``, ``stop`` and ``status``, parameters and life cycle of one run.

    ``commands``: the run's. ``context``: of its control domain.
    """

    def __init__(self, commands: Commands, *, context: Context) -> None:
        super().__init__(NAME, context=context, enable_rosout=False)
        self._commands = commands
        self._reply = Reply(True, "")
        for name, field, value in parameters_of(commands):
            if not self.has_parameter(name):  # every node has use_sim_time
                self.declare_parameter(name, plain(value), descriptor(field, read_only=False))
        self.add_on_set_parameters_callback(self._change)
        does: dict[str, Callable[[], Reply]] = {
            "start": self._start,
            "pause": self._pause,
            "stop": self._stop,
            "status": lambda: Reply(True, json.dumps(self.status())),
        }
        for name in SERVICES:
            self.create_service(Trigger, f"~/{name}", _answering(does[name]))
        self.pings = ClockPings(self)
        self.trigger_configure()
        if commands.wishes.state is RunState.RUNNING:
            self.trigger_activate()

    def status(self) -> dict[str, Any]:
        """Return what is wished, what the driver told last, and how far the clocks of other computers are off."""
        wishes = self._commands.wishes
        wished = {
            "state": wishes.state.value,
            RELATIONS: list(wishes.relations),
            **{part: plain(getattr(wishes, part)) for part in CHANGEABLE},
        }
        return {**wished, **self._commands.status, "clocks": self.pings.offsets()}

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin, or go on."""
        return self._transition_result(self._commands.start())

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Pause."""
        return self._transition_result(self._commands.pause())

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the run."""
        return self._transition_result(self._commands.stop())

    def _transition_result(self, reply: Reply) -> TransitionCallbackReturn:
        self._reply = reply
        return TransitionCallbackReturn.SUCCESS if reply.ok else TransitionCallbackReturn.FAILURE

    def _start(self) -> Reply:
        if self.label == "unconfigured":
            self.trigger_configure()
        return self._by_transition(self.trigger_activate) if self.label == "inactive" else self._commands.start()

    def _pause(self) -> Reply:
        return self._by_transition(self.trigger_deactivate) if self.label == "active" else self._commands.pause()

    def _stop(self) -> Reply:
        return self._commands.stop() if self.label == "finalized" else self._by_transition(self.trigger_shutdown)

    def _by_transition(self, trigger: Callable[[], Any]) -> Reply:
        """Command by a change of the life cycle, so that the two never differ; return what came of it."""
        trigger()
        return self._reply

    def _change(self, changed: Sequence[Parameter]) -> SetParametersResult:
        if len(changed) != 1:
            return SetParametersResult(
                successful=False, reason=f"got {len(changed)} changes at once; change one at a time"
            )
        [each] = changed
        if each.name == RELATIONS:
            reply = self._commands.choose(_words(each.value))
        else:
            reply = self._commands.change(each.name, each.value)
        return SetParametersResult(successful=reply.ok, reason=reply.text)


def parameters_of(commands: Commands) -> Iterator[tuple[str, dataclasses.Field[Any], Any]]:
    """Yield name, field and value of every parameter: the configuration, with parts as ``part.key``."""
    config = dataclasses.replace(commands.config, relations=commands.wishes.relations)
    for field in dataclasses.fields(LiveConfig):
        value = getattr(config, field.name)
        if field.name in PARTS:
            yield from ((f"{field.name}.{f.name}", f, getattr(value, f.name)) for f in dataclasses.fields(value))
        else:
            yield field.name, field, value


def _words(value: Any) -> tuple[str, ...]:
    """Read a list of names, or names with commas between them."""
    words = value.split(",") if isinstance(value, str) else value or ()
    return tuple(word.strip() for word in map(str, words) if word.strip())


def _answering(do: Callable[[], Reply]) -> Callable[[Any, Any], Any]:
    def answer(request: Any, response: Any) -> Any:
        reply = do()
        response.success, response.message = reply.ok, reply.text
        return response

    return answer
