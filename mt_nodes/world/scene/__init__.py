# SPDX-License-Identifier: Apache-2.0
"""Generated scenes: meshes, sensor models, ray casting."""
