# SPDX-License-Identifier: Apache-2.0
"""The only place that imports ROS."""
