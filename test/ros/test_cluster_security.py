# SPDX-License-Identifier: Apache-2.0
"""Whoever reaches a Dask scheduler can have code executed: beyond this machine that takes a key."""

from __future__ import annotations

import asyncio
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.runs.campaign.cluster_security import check_started, is_here, key_of, own_key, refuse_plain
from mt_nodes.runs.campaign.clusters import client_of, settings_of
from mt_nodes.runs.campaign.dask_pool import DaskPool
from mt_nodes.runs.campaign.file import Campaign

LIMIT_S = 60.0
PAGE = r"docs/security\.md#dask-clusters"


def own_address() -> str:
    """Return an address of this machine that others reach; empty if it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


HOST = own_address()
needs_network = pytest.mark.skipif(not HOST or is_here(HOST), reason="this machine has no address but loopback")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskPool]:
    """A cluster that other machines reach."""
    home = tmp_path_factory.mktemp("home")
    with closing(DaskPool({"kind": "local", "host": HOST, "processes": False}, home)) as made:
        yield made


@needs_network
def test_a_cluster_that_other_machines_reach_uses_tls(pool: DaskPool) -> None:
    """And does its work."""
    assert pool._client.scheduler.address.startswith(f"tls://{HOST}:")
    assert pool._client.submit(sum, [1, 2]).result(LIMIT_S) == 3
    assert all(address.startswith(f"tls://{HOST}:") for address in pool._client.nthreads())


@needs_network
def test_who_has_no_key_or_another_one_is_refused(pool: DaskPool) -> None:
    """By the scheduler, and by each worker."""
    from distributed import Client

    workers = list(pool._client.nthreads())
    for address in (pool._client.scheduler.address, *workers):
        for target, key in ((address.replace("tls:", "tcp:"), None), (address, own_key())):
            with pytest.raises(OSError):
                Client(target, security=key, timeout=2)


@needs_network
def test_a_campaign_joins_a_cluster_by_its_certificates(pool: DaskPool, tmp_path: Path) -> None:
    """Paths in a campaign file are relative to it; without the key nobody is let in."""
    key = pool._client.security
    for name, text in (("ca", key.tls_ca_file), ("cert", key.tls_client_cert), ("key", key.tls_client_key)):
        (tmp_path / f"{name}.pem").write_text(text)
    address = pool._client.scheduler.address
    file = tmp_path / "campaign.yaml"
    file.write_text(
        "{bags: [drive], relations: [noise_outside_roi_10], cluster: {kind: address, wait_s: 20, "
        f"address: '{address}', tls: {{ca: ca.pem, cert: cert.pem, key: key.pem}}}}}}"
    )
    cluster = Campaign.load(file).cluster
    assert cluster is not None
    with closing(DaskPool(cluster, tmp_path / "home")) as joined:
        assert joined.free == 1


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("127.0.0.2", True),
        ("localhost", True),
        ("tcp://[::1]:8786", True),
        ("::1", True),
        ("inproc://192.0.2.9/17/1", True),
        ("tcp://0.0.0.0:8786", False),
        ("0.0.0.0", False),
        ("::", False),
        ("tcp://[::]:8786", False),
        ("tcp://localhost.example.org:8786", False),
        ("tcp://127.example.org:8786", False),
        ("tcp://scheduler:8786", False),
        ("", False),
    ],
)
def test_only_loopback_is_here(address: str, here: bool) -> None:
    """A name may be resolved to anything."""
    assert is_here(address) == here


@pytest.mark.parametrize("address", ["tcp://scheduler:8786", "ws://scheduler:80", "scheduler:8786", "ucx://10.0.0.1:1"])
def test_a_plain_scheduler_elsewhere_needs_the_users_word(address: str, capsys: Any) -> None:
    """And is warned of then."""
    with pytest.raises(UsageError, match=rf"insecure: true.*{PAGE}"), ExitStack() as ending:
        client_of({"kind": "address", "address": address}, settings_of({}), ending)
    assert not capsys.readouterr().err
    refuse_plain(address, insecure=True)
    assert f"mt: warning: cluster: {address} is neither encrypted" in capsys.readouterr().err
    refuse_plain("tls://scheduler:8786", insecure=False)
    refuse_plain("tcp://127.0.0.1:8786", insecure=False)
    assert not capsys.readouterr().err


@needs_network
def test_what_is_started_is_looked_at(tmp_path: Path, capsys: Any) -> None:
    """A deployer's own argument may undo what is set by default."""
    asked = {"kind": "local", "host": HOST, "processes": False, "security": None, "protocol": "tcp://"}
    with pytest.raises(Exception, match=rf"listens at tcp://{HOST}:\d+ without TLS; say `insecure: true`"):
        DaskPool(asked, tmp_path)
    DaskPool({**asked, "insecure": True}, tmp_path).close()
    assert "mt: warning: cluster: tcp://" in capsys.readouterr().err
    check_started("tcp://127.0.0.1:1", insecure=False)


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        ({"ca": "a"}, r"cluster\.tls: got .*expected \{ca: FILE, cert: FILE, key: FILE\}"),
        ("ca.pem", r"cluster\.tls: got 'ca\.pem'"),
        ({"ca": __file__, "cert": __file__, "key": "/none"}, r"cluster\.tls\.key: there is no such file: /none"),
    ],
)
def test_certificates_that_are_none_are_named(tls: Any, message: str) -> None:
    """Before anything is connected."""
    with pytest.raises(UsageError, match=message):
        key_of(tls)


def test_the_key_is_no_setting_of_a_campaign() -> None:
    """It is not in what a campaign records."""
    asked = {"bags": ["drive"], "relations": ["a"], "cluster": {"kind": "local", "host": "0.0.0.0"}}
    assert "PRIVATE" not in str(build(Campaign, asked, "test").as_plain())


class Server:
    """An SSH server of this user on loopback that executes commands and takes files, as hosts of a cluster do."""

    def __init__(self, place: Path) -> None:
        import asyncssh

        self.commands: list[str] = []
        self._children: list[Any] = []
        self.key = place / "id"
        user = asyncssh.generate_private_key("ssh-ed25519")
        user.write_private_key(str(self.key))
        user.write_public_key(str(place / "authorized"))
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        self._authorized = str(place / "authorized")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(self._listen())
        self.port = self._server.get_port()

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LIMIT_S)

    async def _listen(self) -> Any:
        import asyncssh

        return await asyncssh.listen(
            *("127.0.0.1", 0),
            server_host_keys=[self._host_key],
            authorized_client_keys=self._authorized,
            process_factory=self._execute,
            sftp_factory=True,
        )

    async def _execute(self, process: Any) -> None:
        self.commands.append(process.command)
        child = await asyncio.create_subprocess_shell(
            f"exec {process.command}", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._children.append(child)
        await asyncio.gather(_forward(child.stdout, process.stdout), _forward(child.stderr, process.stderr))
        process.exit(await child.wait())

    def close(self) -> None:
        """Stop listening, and end what was started: a task that is left would be destroyed in somebody else's test."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for child in self._children:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _forward(lines: Any, to: Any) -> None:
    async for line in lines:
        with suppress(OSError):  # the other side is gone
            to.write(line.decode())


def test_workers_over_ssh_get_a_key_in_a_file_of_theirs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scheduler and worker listen at all addresses then; the key is in no command line, and is gone afterwards."""
    import dask

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(Server(tmp_path)) as server:
        options = {"port": server.port, "client_keys": [str(server.key)], "known_hosts": None, "username": "test"}
        cluster = {"kind": "ssh", "hosts": ["127.0.0.1"] * 2, "connect_options": options, "wait_s": LIMIT_S}
        with ExitStack() as ending:
            client = client_of({**cluster, "remote_python": sys.executable}, settings_of(cluster), ending)
            assert client.scheduler.address.startswith("tls://")
            assert client.submit(sum, [1, 2]).result(LIMIT_S) == 3
            file = client.submit(dask.config.get, "distributed.comm.tls.worker.key").result(LIMIT_S)
            modes = [stat.S_IMODE(path.stat().st_mode) for path in (Path(file).parent, Path(file))]
            assert [f"{mode:o}" for mode in modes] == ["700", "600"]
            assert "PRIVATE KEY" in Path(file).read_text()
        assert not Path(file).parent.exists()
    assert len([command for command in server.commands if "dask_spec" in command]) == 2
    assert not any("PRIVATE" in command for command in server.commands)
