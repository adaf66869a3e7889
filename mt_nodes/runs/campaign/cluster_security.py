# SPDX-License-Identifier: Apache-2.0
"""Who may talk to the scheduler and the workers of a campaign: whoever may has code executed there.

Dask's connections are neither encrypted nor authenticated unless they use TLS in which both sides show a certificate.
Clusters that we start get a key of their own, which lives as long as they do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError

PAGE = "docs/security.md#dask-clusters"
_TLS_KEYS = ("ca", "cert", "key")
_ENCRYPTED = ("tls://", "wss://")
_PARTS = ("cert", "key")


def is_here(address: str) -> bool:
    """Whether only processes of this machine reach an address such as ``tcp://127.0.0.1:8786``, or a host."""
    scheme, _, rest = address.rpartition("://")
    host = rest.rpartition(":")[0] if rest.count(":") == 1 or rest.startswith("[") else rest
    if scheme == "inproc" or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def own_key() -> Any:
    """Return a new key and its certificate, as ``distributed.security.Security``, for all roles.

    Raises UsageError: the package for it is missing.
    """
    from distributed.security import Security

    try:
        return Security.temporary()
    except ImportError as error:
        raise UsageError(
            "cluster: reachable from other machines, so it needs TLS, and that needs cryptography; type: pip install "
            f"'mt_nodes[cluster]', or see {PAGE}"
        ) from error


def key_of(tls: Any) -> Any:
    """Return the certificates that ``tls:`` of ``cluster:`` names, as Security; None for none: Dask's own settings.

    Raises UsageError: it is no such mapping, or a file is missing.
    """
    from distributed.security import Security

    if tls is None:
        return None
    if not isinstance(tls, dict) or sorted(tls) != sorted(_TLS_KEYS):
        raise UsageError(f"cluster.tls: got {tls!r}, expected {{ca: FILE, cert: FILE, key: FILE}}")
    if missing := [name for name in _TLS_KEYS if not Path(str(tls[name])).is_file()]:
        raise UsageError(f"cluster.tls.{missing[0]}: there is no such file: {tls[missing[0]]}")
    return Security(
        require_encryption=True, tls_ca_file=tls["ca"], tls_client_cert=tls["cert"], tls_client_key=tls["key"]
    )


def refuse_plain(address: str, insecure: bool) -> None:
    """Refuse the address of a scheduler on another machine that anybody can read and command; warn where it may be.

    Raises UsageError: it is such a one, and the file does not say ``insecure: true``.
    """
    if is_here(address) or address.startswith(_ENCRYPTED):
        return
    if not insecure:
        raise UsageError(
            f"cluster.address: got {address}, which is neither encrypted nor authenticated: whoever reaches it has "
            f"code executed on your workers, and can forge results; expected tls://HOST:PORT, or `insecure: true` in "
            f"a network that you trust ({PAGE})"
        )
    warn(address)


def check_started(address: str, insecure: bool) -> None:
    """Look at what a deployer has started.

    Raises InfrastructureError: other machines reach it without TLS, and the file does not say ``insecure: true``.
    """
    if not address or is_here(address) or address.startswith(_ENCRYPTED):
        return
    if not insecure:
        raise InfrastructureError(
            f"cluster: listens at {address} without TLS; say `insecure: true` to allow it ({PAGE})"
        )
    warn(address)


def warn(address: str) -> None:
    """Warn of a cluster without TLS."""
    text = "is neither encrypted nor authenticated: whoever reaches it has code executed on your workers"
    print(f"mt: warning: cluster: {address} {text}; see {PAGE}", file=sys.stderr, flush=True)


class SharedKey:
    """A key on other hosts, in a file that only the user reads.

    Dask starts its processes there with its settings in the command line, which every user of the host can read: so the
    settings name the file.
    ``key``: of :func:`own_key`. ``hosts``: with repetitions, in the order of ``options``. ``options``: of
    ``asyncssh.connect``: a mapping, or one for each host.
    """

    def __init__(self, key: Any, hosts: Sequence[str], options: Any) -> None:
        several = options if isinstance(options, list) else [options or {}] * len(hosts)
        self._text = key.tls_client_key + key.tls_client_cert
        self._hosts = dict(zip(hosts, several, strict=False))
        self._directory = f"/tmp/mt_nodes-{secrets.token_hex(16)}"

    @property
    def settings(self) -> dict[str, Any]:
        """Dask's settings for it."""
        path, prefix = f"{self._directory}/key.pem", "distributed.comm"
        files = {f"{prefix}.tls.{role}.{part}": path for role in ("scheduler", "worker", "client") for part in _PARTS}
        return {f"{prefix}.require-encryption": True, f"{prefix}.tls.ca-file": path, **files}

    def hand_out(self) -> None:
        """Copy it to every host by SFTP. Raises InfrastructureError: a host cannot be reached, or does not take it."""
        for host, options in self._hosts.items():
            try:
                asyncio.run(self._copy(host, options))
            except Exception as error:  # of asyncssh, of the network, of the remote file system
                raise InfrastructureError(f"cluster: cannot copy the key to {host}: {error}") from error

    def take_back(self) -> None:
        """Remove it from every host; one that is gone keeps a key that is worth nothing any more."""
        for host, options in self._hosts.items():
            with suppress(Exception):
                asyncio.run(self._remove(host, options))

    async def _copy(self, host: str, options: Mapping[str, Any]) -> None:
        import asyncssh

        async with asyncssh.connect(host, **options) as connection, connection.start_sftp_client() as sftp:
            path = f"{self._directory}/key.pem"
            if await sftp.exists(path):  # another name of a host that has it: nobody else knows the directory
                return
            await sftp.mkdir(self._directory, asyncssh.SFTPAttrs(permissions=0o700))
            async with sftp.open(path, "xb", asyncssh.SFTPAttrs(permissions=0o600)) as file:
                await file.write(self._text.encode())

    async def _remove(self, host: str, options: Mapping[str, Any]) -> None:
        import asyncssh

        async with asyncssh.connect(host, **options) as connection, connection.start_sftp_client() as sftp:
            await sftp.rmtree(self._directory)
