# SPDX-License-Identifier: Apache-2.0
"""Motion of the ego vehicle over an episode: from transforms, odometry, an IMU, or the LiDAR itself."""
