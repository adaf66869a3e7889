# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest: the fixtures ``assert_holds``, ``mt_bag`` and ``mt_stack``, and options for the last two.

pytest loads it in every session, so it imports nothing else until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_OPTIONS = {
    "mt_bag": ("--mt-bag", "BAG", "bag of the fixture mt_bag; several times: each test that uses it runs with each"),
    "mt_stack": ("--mt-stack", "STACK", "stack of the fixture mt_stack: name of a shipped one, or a stack file"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, and the same in the configuration file."""
    group = parser.getgroup("mt_nodes", "metamorphic tests of driving stacks")
    for name, (option, metavar, about) in _OPTIONS.items():
        group.addoption(option, dest=name, metavar=metavar, action="append", default=None, help=about)
        parser.addini(name, about, type="linelist")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses ``mt_bag`` or ``mt_stack`` with each that is given."""
    for name in _OPTIONS:
        if name in metafunc.fixturenames and len(given := _given(metafunc.config, name)) > 1:
            metafunc.parametrize(name, given, ids=[Path(one).name for one in given], indirect=True, scope="session")


@pytest.fixture(scope="session")
def mt_bag(request: pytest.FixtureRequest) -> str:
    """Bag that ``--mt-bag``, or ``mt_bag`` in the configuration file, names; without one the test is an error."""
    return _one(request, "mt_bag")


@pytest.fixture(scope="session")
def mt_stack(request: pytest.FixtureRequest) -> str:
    """Stack that ``--mt-stack``, or ``mt_stack`` in the configuration file, names; without one the test is an error."""
    return _one(request, "mt_stack")


@pytest.fixture(scope="session")
def assert_holds(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """:func:`mt_nodes.assert_holds`, which keeps its results in a temporary directory of pytest's.

    With a frame in place of a bag it is :func:`mt_nodes.assert_frame_holds`.
    """

    def assert_holds(bag: Any, stack: Any, relation: Any, **options: Any) -> Any:
        from mt_nodes.api import assertion, frame_assertion  # imports all that a replay needs
        from mt_nodes.api.frames import Frame

        __tracebackhide__ = True
        if isinstance(bag, Frame):
            return frame_assertion.assert_frame_holds(bag, stack, relation, **options)
        out = options.pop("out", None) or tmp_path_factory.mktemp("mt_results")
        return assertion.assert_holds(bag, stack, relation, out=out, **options)

    return assert_holds


def _given(config: pytest.Config, name: str) -> list[str]:
    """Return what was given on the command line, else in the configuration file, whose paths are relative to it."""
    if typed := config.getoption(name):
        return list(typed)
    return [str(path) if (path := config.rootpath / one).exists() else one for one in config.getini(name)]


def _one(request: pytest.FixtureRequest, name: str) -> str:
    if hasattr(request, "param"):
        return str(request.param)
    given = _given(request.config, name)
    if not given:
        option, metavar, _ = _OPTIONS[name]
        text = f"{name}: none is given; type pytest {option} {metavar}, or set {name} in the configuration file"
        pytest.fail(text, pytrace=False)
    return given[0]
