# SPDX-License-Identifier: Apache-2.0
"""What the nodes that run alone have of a life cycle (https://design.ros2.org/articles/node_lifecycle.html)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.params import build, param
from mt_nodes.nodes.parameters import read_parameters

T = TypeVar("T", bound="ManagedParameters")

#: To Fast DDS what comes of somebody who is gone has never come, and on a busy machine that he goes may be read first.
REPLIED_S = 0.5


@dataclass(frozen=True)
class ManagedParameters:
    """What every one of them is told."""

    #: Parameters that ``ros2 param set`` changes while the node runs.
    LIVE: ClassVar[frozenset[str]] = frozenset()

    autostart: bool = param(True, help="configure and activate it at once; false: whoever manages life cycles does")


class TidyLifecycleNode(LifecycleNode):
    """One that is gone when it is destroyed: rclpy (Jazzy) forgets the services of the life cycle."""

    @property
    def label(self) -> str:
        """The state it is in: unconfigured, inactive, active, finalized."""
        return str(self._state_machine.current_state[1])

    def destroy_node(self) -> None:
        """Take the services away, too."""
        self._state_machine.destroy_when_not_in_use()
        super().destroy_node()


class ManagedNode(TidyLifecycleNode, ABC):
    """Configured, it has files and topics open; active, it works; inactive, it takes nothing; cleaned up, it lets go.

    Parameters are read, and checked, before: they hold for the life of the node. A subclass says in :meth:`open` what
    it opens, looks at ``active`` where it takes something, and calls :meth:`begin` when it is made.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.active = self.finished = self._configured = False
        self._given: Any = None
        self._refusal: Exception | None = None
        #: Why the node cannot go on.
        self.failure: MtError | None = None

    def parameters(self, cls: type[T]) -> T:
        """Return the checked parameters. Raises UsageError: a value has the wrong type or is out of range."""
        self._given = given = read_parameters(self, cls, cls.LIVE)
        self._autostart = given.autostart
        if cls.LIVE:
            self.add_on_set_parameters_callback(self._change)
        return given

    def _change(self, changed: Sequence[Parameter]) -> SetParametersResult:
        """Take new values of live parameters, checked as at the start; what follows is done with them."""
        values = {field.name: getattr(self._given, field.name) for field in fields(self._given)}
        values |= {each.name: each.value for each in changed if each.name in values}
        try:
            self._given = build(type(self._given), values, self.get_name())
        except UsageError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def begin(self) -> None:
        """Configure and activate, unless somebody else is to. Raises MtError: it cannot be configured."""
        if self._autostart:
            self.trigger_configure()
            if self._refusal is not None:
                self.destroy_node()
                raise self._refusal
            self.trigger_activate()

    @abstractmethod
    def open(self) -> None:
        """Open files and topics. Raises MtError: what parameters name is not as it must be."""

    def close(self) -> None:
        """Let go of what is not destroyed with publishers, subscriptions and timers."""

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open; where that fails it is said why, and may be tried again."""
        self._before = {id(each) for each in self._endpoints()}
        self._refusal = None
        try:
            self.open()
        except Exception as error:  # noqa: BLE001 - rclpy would drop it
            self._refusal = error
            if not self._autostart:
                self.get_logger().error(str(error))
            self._destroy_endpoints()
            return TransitionCallbackReturn.FAILURE
        self._configured = True
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Work."""
        self.active = True
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take nothing more; what was taken is finished."""
        self.active = False
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let go of everything that was opened."""
        self._let_go()
        self._destroy_endpoints()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the process, as soon as whoever asked for it has had time to get the reply."""
        self.active = False
        self.create_timer(REPLIED_S, self._finish, clock=Clock(clock_type=ClockType.STEADY_TIME))
        return TransitionCallbackReturn.SUCCESS

    def _finish(self) -> None:
        self.finished = True

    def destroy_node(self) -> None:
        """Let go of everything, and end."""
        try:
            self._let_go()
        finally:
            super().destroy_node()

    def _let_go(self) -> None:
        self.active = False
        if self._configured:
            self._configured = False
            self.close()

    def _endpoints(self) -> list[Any]:
        return [*self.publishers, *self.subscriptions, *self.timers]

    def _destroy_endpoints(self) -> None:
        """Destroy what was opened, not what the node had of its own before."""
        for kind, destroy in (
            (self.publishers, self.destroy_publisher),
            (self.subscriptions, self.destroy_subscription),
            (self.timers, self.destroy_timer),
        ):
            for each in [each for each in kind if id(each) not in self._before]:
                destroy(each)
