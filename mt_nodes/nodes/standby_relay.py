# SPDX-License-Identifier: Apache-2.0
"""A relay that stands by, under a name of its own: whoever looks at the list of processes can tell the two apart."""

from mt_nodes.nodes.relay import main

if __name__ == "__main__":
    main()
