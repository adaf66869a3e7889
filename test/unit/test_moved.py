# SPDX-License-Identifier: Apache-2.0
"""Modules that plugins of users import by their names of before."""

from __future__ import annotations

import importlib

import pytest

from mt_nodes.base.moved import MOVED, MovedModules
from mt_nodes.base.plugins import ENTRY_POINT_GROUP


@pytest.mark.parametrize("before", MOVED)
def test_a_name_of_before_tells_the_new_one(before: str) -> None:
    importlib.import_module(MOVED[before])
    with pytest.raises(ModuleNotFoundError, match=rf"^{before} is now {MOVED[before]}; import it from there$"):
        MovedModules().find_spec(before, None)


def test_what_imports_a_name_of_before_is_told() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^mt_nodes.params is now mt_nodes.base.params; import it from"):
        importlib.import_module("mt_nodes.params")
    # The package itself may be there still, as a folder that a checkout has left.
    with pytest.raises(ModuleNotFoundError, match=r"^mt_nodes.mutations(.base)? is now mt_nodes.relations.mutations"):
        importlib.import_module("mt_nodes.mutations.base")


def test_a_name_that_never_was_is_an_error_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'mt_nodes.nowhere'"):
        importlib.import_module("mt_nodes.nowhere")


def test_the_group_of_entry_points_is_no_module_and_stays() -> None:
    assert ENTRY_POINT_GROUP == "mt_nodes.plugins"
