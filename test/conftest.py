# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Before NumPy comes: its threads wait for work by spinning, 30 ms of a processor in each of thousands of processes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from mt_nodes.base import plugins
from mt_nodes.base.environment import clean_shared_memory, free_domains, profile_path, ros_environment

# A shared machine may stall for longer than any deadline that would mean something; pytest-timeout bounds each test.
# Properties of a test that does not say how many examples it needs: twenty times as many in `make test-long`.
settings.register_profile("mt_nodes", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("long", deadline=None, derandomize=True, max_examples=500)
settings.load_profile("mt_nodes")
gc.disable()  # while tests are collected: what comes then stays

#: The longest, in this order, those that wait beside those that compute: begun last, one of them would keep a single
#: worker busy when the others are done.
FIRST = (
    *("test_replay.py", "test_reference_planner_drives.py", "test_stack_deaths.py", "test_matrix.py"),
    *("test_matrix_camera.py", "test_loop_matrix.py", "test_campaign_core.py", "test_vehicle_inline.py"),
    *("test_rule_decisions.py", "test_ros_loop.py", "test_manipulations.py", "test_ros_live.py", "test_show.py"),
    *("test_campaign_ros.py", "test_unavoidable.py", "test_vehicle_boxed.py", "test_matrix_control.py"),
    *("test_ros_live_safety.py", "test_python_examples.py", "test_campaign_dask.py"),
)

#: Files of test/ros whose participants have the settings that we ship.
OF_SHIPPED_TRANSPORT = (
    "test_environment.py",
    "test_first_verdict.py",
    "test_bench_vehicle.py",
    "test_security_policy.py",
)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove what killed processes left in shared memory: among hundreds of their segments large messages get lost."""
    if not hasattr(session.config, "workerinput"):
        clean_shared_memory()


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Make most of a product of parameters long; for workers, mix the files: those of test/ros wait, others compute."""
    places: dict[str, dict[Any, int]] = {}
    for item in items:
        product = item.get_closest_marker("by_turns")
        if product and not _has_turn(item, places, *product.args, **product.kwargs):
            item.add_marker(pytest.mark.long)
    if hasattr(config, "workerinput"):
        place = _mixed(list(dict.fromkeys(item.path for item in items)))
        items.sort(key=lambda item: place[item.path])


def _has_turn(
    item: pytest.Item, places: dict[str, dict[Any, int]], one: str, other: str, of: int, always: str = ""
) -> bool:
    """Whether it is the turn of the other parameter's value, one of ``of``, or it is ``always``."""
    params, test = item.callspec.params, item.nodeid.partition("[")[0]  # type: ignore[attr-defined]
    if params[other] == always:
        return True
    # By appearance: pytest's own indices of parameters count the tests.
    at = [places.setdefault(f"{test} {name}", {}) for name in (one, other)]
    first, second = (place.setdefault(params[name], len(place)) for place, name in zip(at, (one, other), strict=True))
    return second == first % of


def _mixed(files: list[Path]) -> dict[Path, float]:
    """Return where each file stands: the longest first, each folder's others spread evenly."""
    place: dict[Path, float] = {}
    for folder in {file.parent for file in files}:
        inside = [file for file in files if file.parent == folder]
        place |= {file: (n + 0.5) / len(inside) for n, file in enumerate(inside)}
    return {file: FIRST.index(file.name) - len(FIRST) if file.name in FIRST else at for file, at in place.items()}


def pytest_collection_finish() -> None:
    """Leave ten thousand tests and all modules out of what the garbage collector looks through."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 20, 10)  # tests make much and keep little: one collection in twenty does


@pytest.fixture(scope="module", autouse=True)
def _own_plugins() -> Iterator[None]:
    """Plugins that a module adds, or imports from a directory that it names for a while, end with it.

    The next one lists what is shipped.
    """
    before = plugins.directories()
    yield
    imported = [name for name in sys.modules if name.startswith("mt_plugins_")]
    for name in imported:
        del sys.modules[name]
    if imported or plugins.directories() != before:
        plugins._directories[:] = before
        plugins.catalogue.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def _own_process_state() -> Iterator[None]:
    """Environment, directory and search path end with a module: Dask, for one, sets variables for its workers here."""
    environment, directory, path = dict(os.environ), Path.cwd(), list(sys.path)
    yield
    os.chdir(directory)
    sys.path[:] = path
    for name in os.environ.keys() - environment.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update({name: value for name, value in environment.items() if name != "PYTEST_CURRENT_TEST"})


@pytest.fixture(scope="session", autouse=True)
def _qos_parsed_once() -> Iterator[None]:
    """Bags say the same few QoS again and again: parsing them takes two thirds of opening a small bag."""
    from rosbags.rosbag2 import metadata, reader, storage_mcap

    parsed_text = cache(metadata.parse_qos)

    def parse_qos(said: Any) -> Any:
        return list(parsed_text(said)) if isinstance(said, str) else metadata.parse_qos(said)

    with pytest.MonkeyPatch.context() as patch:
        for module in (reader, storage_mcap):
            patch.setattr(module, "parse_qos", parse_qos)
        yield


@pytest.fixture(scope="session")
def small_segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transport that we ship, but with a eighth of its shared memory.

    Each of a thousand participants fills its segment with zeros when it is made: 60 ms of a processor for 64 MiB.
    """
    profile, sizes = profile_path().read_text(), {"segment_size": 8 << 20, "maxMessageSize": 4 << 20}
    for name, size in sizes.items():
        profile, changes = re.subn(rf"(<{name}>)\d+(</{name}>)", rf"\g<1>{size}\g<2>", profile)
        assert changes == 1, f"{profile_path()} does not say {name} once"
    small = tmp_path_factory.mktemp("dds") / "small_segments.xml"
    small.write_text(profile)
    return small


@pytest.fixture(scope="module", autouse=True)
def _transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small segments for whoever takes part in ROS below test/ros, but where the shipped transport is tested."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name == "ros" and request.path.name not in OF_SHIPPED_TRANSPORT:
            patch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", str(request.getfixturevalue("small_segments")))
        yield


@pytest.fixture(scope="module")
def domains(_transport: None) -> Iterator[tuple[int, ...]]:
    """Three ROS domains of a module's own, the first of them the user's."""
    with pytest.MonkeyPatch.context() as patch, free_domains(3) as lease:
        for name, value in ros_environment(os.environ, lease.domains[0]).items():
            patch.setenv(name, value)
        yield lease.domains


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    """Ends what a test started, in reverse order."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def made(domains: tuple[int, ...]) -> Iterator[Callable[..., Any]]:
    """Makes one node as ``ros2 run … --ros-args -p name:=value`` does, and spins it until the test ends."""
    import rclpy  # only those who make nodes pay for it
    from rclpy.executors import SingleThreadedExecutor

    with ExitStack() as ending:

        def made(cls: Any, **parameters: Any) -> Any:
            words = [w for name, value in parameters.items() for w in ("-p", f"{name}:={value}")]
            rclpy.init(args=["--ros-args", *words] if words else [], domain_id=domains[1])
            ending.callback(rclpy.try_shutdown)
            node = cls()
            ending.callback(node.destroy_node)
            executor, over = SingleThreadedExecutor(), threading.Event()
            executor.add_node(node)

            def spin() -> None:
                while not over.is_set():
                    executor.spin_once(timeout_sec=0.1)

            thread = threading.Thread(target=spin)
            thread.start()

            def end() -> None:
                over.set()
                thread.join()
                executor.shutdown()

            ending.callback(end)
            return node

        yield made
