# SPDX-License-Identifier: Apache-2.0
"""A generated world: meshes, sensor models, ray casting."""
