# SPDX-License-Identifier: Apache-2.0
"""Names of the types of arrays that most of the package works with."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
#: Indices.
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Colours of 8 bits.
Pixels = npt.NDArray[np.uint8]
