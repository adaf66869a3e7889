# SPDX-License-Identifier: Apache-2.0
"""Our rotations are SciPy's, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mt_nodes.data.rotations import quaternion_of, quaternion_of_rpy, quaternion_of_yaw, rotation_matrix

quaternions = st.lists(st.floats(-10, 10), min_size=4, max_size=4)
angles = st.lists(st.floats(-7, 7), min_size=3, max_size=3)


@given(quaternions)
def test_a_quaternion_and_its_matrix(quaternion: list[float]) -> None:
    assume(np.linalg.norm(quaternion) > 1e-3)
    matrix = rotation_matrix(quaternion)
    assert np.array_equal(matrix, Rotation.from_quat(quaternion).as_matrix())
    assert np.array_equal(quaternion_of(matrix), Rotation.from_matrix(matrix).as_quat())


HALF_TURNS = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (1, 1, 0, 0), (0, 1, 1, 0), (1, 1, 1, 1)]


@pytest.mark.parametrize("half_turn", HALF_TURNS)
def test_where_two_components_are_equally_large(half_turn: tuple[float, ...]) -> None:
    matrix = rotation_matrix(half_turn)
    assert np.array_equal(quaternion_of(matrix), Rotation.from_matrix(matrix).as_quat())


@given(angles)
def test_turns_about_fixed_axes(rpy_rad: list[float]) -> None:
    assert np.array_equal(quaternion_of_rpy(*rpy_rad), Rotation.from_euler("xyz", rpy_rad).as_quat())
    assert np.allclose(quaternion_of_yaw(rpy_rad[2]), quaternion_of_rpy(0.0, 0.0, rpy_rad[2]))


@given(angles, st.lists(st.floats(-1e-4, 1e-4), min_size=9, max_size=9))
def test_a_matrix_of_few_digits_is_taken_for_the_nearest_rotation(rpy_rad: list[float], error: list[float]) -> None:
    rough = Rotation.from_euler("xyz", rpy_rad).as_matrix() + np.reshape(error, (3, 3))
    assert np.allclose(quaternion_of(rough), Rotation.from_matrix(rough).as_quat(), atol=1e-12)


@pytest.mark.parametrize("quaternion", [(0, 0, 0, 0), (1e-200, 0, 0, 0), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_what_is_no_rotation_is_refused(quaternion: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        rotation_matrix(quaternion)
