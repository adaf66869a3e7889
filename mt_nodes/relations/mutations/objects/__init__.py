# SPDX-License-Identifier: Apache-2.0
"""Objects that appear in point clouds, vanish from them or become others."""
