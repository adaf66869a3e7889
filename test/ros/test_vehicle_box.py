# SPDX-License-Identifier: Apache-2.0
"""A box keeps a process away from the vehicle: what it shall not reach is there, outside, and answers others."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mt_nodes.base.errors import ExitCode, InfrastructureError, UsageError
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.base.safety_settings import BoxSettings
from mt_nodes.runs.vehicle import box
from mt_nodes.runs.vehicle.box_report import WITHOUT, BoxReport, boxed, read_report, what_can_be_boxed

LONG_S = 100.0
needs_box = pytest.mark.skipif(
    sys.platform != "linux" or not what_can_be_boxed().whole,
    reason=f"this system allows no whole box: {'; '.join(what_can_be_boxed().shortfalls)}",
)


def run(code: str, settings: BoxSettings | None = None, keep: Sequence[int] = (), **more: Any) -> Any:
    """Run Python in a box; return what it printed as JSON."""
    with TemporaryDirectory() as place:
        argv = boxed(settings or BoxSettings(), (sys.executable, "-c", code), Path(place) / "report.json", keep)
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=LONG_S, **more)
        assert done.returncode == 0, done.stderr
        assert read_report(Path(place) / "report.json").whole
        return json.loads(done.stdout)


def tries(code: str) -> str:
    """Return a program that prints what an expression gives, or the name of the error that it raises."""
    return f"""
import errno, json, os, socket
def attempt():
{chr(10).join("    " + line for line in code.splitlines())}
try:
    print(json.dumps(attempt()))
except OSError as error:
    print(json.dumps(errno.errorcode[error.errno]))
"""


@pytest.fixture(scope="module")
def echo_port() -> Iterator[int]:
    """A server outside that answers datagrams on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        threading.Thread(target=_echo, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", server.getsockname())


def _echo(server: socket.socket) -> None:
    while (got := server.recvfrom(100))[0] != b"end":
        server.sendto(got[0], got[1])


def asks_outside(port: int) -> str:
    return tries(
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10); "
        f"s.connect(('127.0.0.1', {port})); s.send(b'x'); return s.recv(10).decode()"
    )


def test_a_system_that_allows_it_gives_a_whole_box() -> None:
    """Asked of another program: were it asked of ours, what is broken there would only skip the tests below."""
    program = shutil.which("unshare")
    if program is None:
        pytest.skip("no program unshare (util-linux) here to ask what the system allows")
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    asked = [program, *own_user, "--net", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    allowed = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=LONG_S)
    if allowed.returncode:
        pytest.skip(f"this system allows no namespaces: {allowed.stderr.strip()}")
    assert what_can_be_boxed().whole, what_can_be_boxed().shortfalls


@needs_box
def test_shared_memory_is_its_own_even_where_devices_are_not(tmp_path: Path) -> None:
    ours = Path("/dev/shm") / f"mt_box_{os.getpid()}"
    ours.write_bytes(b"port")
    try:
        ran = without_layer(tmp_path, "devices", required=False, then="import os; print(os.listdir('/dev/shm'))")
    finally:
        ours.unlink()
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr


@needs_box
def test_a_server_on_the_loopback_outside_is_not_reached(echo_port: int) -> None:
    outside = subprocess.run(
        [sys.executable, "-c", asks_outside(echo_port)], check=False, capture_output=True, text=True
    )
    assert json.loads(outside.stdout) == "x"
    assert run(asks_outside(echo_port)) == "ECONNREFUSED"


@needs_box
def test_there_is_no_way_to_other_computers_and_no_interface_but_loopback() -> None:
    code = "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nreturn s.connect(('192.0.2.1', 9))"
    assert run(tries(code)) == "ENETUNREACH"
    assert run(tries("return [name for _, name in socket.if_nameindex()]")) == ["lo"]


@needs_box
def test_processes_inside_reach_each_other_by_loopback() -> None:
    code = (
        "server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('127.0.0.1', 0))\n"
        "if os.fork() == 0:\n"
        "    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', server.getsockname()); os._exit(0)\n"
        "server.settimeout(10)\n"
        "return server.recv(10).decode()"
    )
    assert run(tries(code)) == "hello"


@needs_box
def test_an_abstract_socket_outside_is_not_reached() -> None:
    name = f"\0mt_box_test_{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(name)
        assert run(tries(f"socket.socket(socket.AF_UNIX).connect({name!r})")) == "ECONNREFUSED"


@needs_box
def test_a_socket_by_path_is_not_reached_and_one_of_its_own_is() -> None:
    with TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as server:
        path = f"{place}/a socket"
        server.bind(path)
        server.listen()
        connects = tries(f"s = socket.socket(socket.AF_UNIX); s.connect({path!r}); return 'reached'")
        own = tries(
            f"a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX); a.bind({place + '/own'!r})\n"
            f"a.listen(); b.connect({place + '/own'!r}); return 'reached'"
        )
        outside = subprocess.run([sys.executable, "-c", connects], check=False, capture_output=True, text=True)
        assert json.loads(outside.stdout) == "reached"
        assert run(connects) == "ECONNREFUSED"
        assert run(own) == "reached"
        assert Path(path).is_socket()


@needs_box
@pytest.mark.parametrize(
    ("family", "kind"), [("AF_CAN", "SOCK_RAW"), ("AF_PACKET", "SOCK_RAW"), ("AF_VSOCK", "SOCK_STREAM")]
)
def test_families_of_sockets_that_reach_hardware_are_refused(family: str, kind: str) -> None:
    assert run(tries(f"socket.socket(socket.{family}, socket.{kind})")) == "EAFNOSUPPORT"


@needs_box
def test_io_uring_which_opens_sockets_unseen_is_refused() -> None:
    code = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.syscall(425, 1, bytes(120))"
    assert run(tries(f"{code}; return ctypes.get_errno()")) == errno.ENOSYS


CALLS = {"x86_64": (272, 56, 250), "aarch64": (97, 220, 219)}


@needs_box
@pytest.mark.parametrize(("which", "error"), [(0, "EPERM"), (1, "EPERM"), (2, "ENOSYS")])
def test_capabilities_are_not_had_back_in_a_namespace_nor_are_keys_of_others_read(which: int, error: str) -> None:
    number = CALLS[os.uname().machine][which]
    # unshare and clone are asked for a user namespace; keyctl for the keys of this session.
    arguments = "0, -3, 0" if which == 2 else "0x10000000 | 17, 0, 0, 0, 0" if which == 1 else "0x10000000"
    code = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        f"got = libc.syscall(*map(ctypes.c_long, ({number}, {arguments},)))\n"
        "if not got: os._exit(0)\n"
        "return got if got > 0 else errno.errorcode[ctypes.get_errno()]"
    )
    assert run(tries(code)) == error


@needs_box
def test_nothing_is_typed_into_a_terminal_outside(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    code = tries("import fcntl, termios; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')")
    argv = boxed(BoxSettings(), (sys.executable, "-c", code), tmp_path / "report.json")
    owns = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    command = (sys.executable, "-c", owns, *argv)
    try:
        done = subprocess.run(
            command, check=True, stdin=theirs, stdout=subprocess.PIPE, timeout=LONG_S, start_new_session=True
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert json.loads(done.stdout) == "EPERM"


@needs_box
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a device file, which needs root")
def test_a_device_file_in_another_place_is_not_opened(tmp_path: Path) -> None:
    os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (tmp_path / "null").open("rb").close()
    assert run(tries(f"open({str(tmp_path / 'null')!r}, 'rb')")) == "EACCES"


@needs_box
def test_descriptors_from_before_a_lower_limit_are_closed(tmp_path: Path) -> None:
    code = (
        "import os, resource, sys; os.dup2(0, 200, inheritable=True)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    inside = "import os; raise SystemExit(os.path.exists('/proc/self/fd/200'))"
    argv = boxed(BoxSettings(), (sys.executable, "-I", "-S", "-c", inside), tmp_path / "report.json")
    assert subprocess.run((sys.executable, "-c", code, *argv), check=False, timeout=LONG_S).returncode == 0


@needs_box
def test_shared_memory_of_others_is_not_seen_and_its_own_is_not_seen_outside() -> None:
    ours = Path("/dev/shm") / f"fastrtps_mt_box_{os.getpid()}"
    ours.write_bytes(b"port")
    try:
        seen = run(tries(f"open('/dev/shm/theirs_{os.getpid()}', 'w').close(); return os.listdir('/dev/shm')"))
    finally:
        ours.unlink()
    assert seen == [f"theirs_{os.getpid()}"]
    assert not Path("/dev/shm", seen[0]).exists()


@needs_box
def test_devices_are_those_that_everybody_needs_and_those_that_are_named() -> None:
    listed = run(tries("return sorted(os.listdir('/dev'))"))
    assert set(listed) <= {
        *("null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr"),
        *("pts", "ptmx", "shm"),
    }
    other = next(p for p in sorted(Path("/dev").iterdir()) if p.is_char_device() and p.name not in listed)
    assert other.name in run(tries("return os.listdir('/dev')"), BoxSettings(devices=(str(other),)))
    works = "os.openpty(); open('/dev/null', 'w').write('x'); return len(open('/dev/urandom', 'rb').read(4))"
    assert run(tries(works)) == 4


@needs_box
def test_processes_outside_are_neither_seen_nor_signalled() -> None:
    assert run(tries(f"os.kill({os.getpid()}, 0)")) == "ESRCH"
    seen = run(tries("return sorted(int(name) for name in os.listdir('/proc') if name.isdigit())"))
    assert seen[0] == 1 and len(seen) == 2


@needs_box
def test_system_switches_can_be_read_only() -> None:
    assert run(tries("return len(open('/proc/sys/kernel/hostname').read()) > 0")) is True
    assert run(tries("open('/proc/sys/kernel/hostname', 'w')")) == "EROFS"
    assert run(tries("os.mkdir('/sys/mt')")) in ("EROFS", "EPERM")
    assert run(tries("return os.statvfs('/sys').f_flag & os.ST_RDONLY")) == os.ST_RDONLY


@needs_box
def test_nothing_is_left_of_privileges() -> None:
    status = dict(
        line.split(":\t")
        for line in run(tries("return open('/proc/self/status').read()")).splitlines()
        if ":\t" in line
    )
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"


@needs_box
def test_writing_can_be_kept_to_what_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    code = tries(f"open({str(tmp_path / 'mine' / 'a')!r}, 'w').write('x'); open({str(tmp_path / 'b')!r}, 'w')")
    assert run(code, BoxSettings(writable=(str(tmp_path / "mine"),))) == "EROFS"
    assert (tmp_path / "mine" / "a").read_text() == "x" and not (tmp_path / "b").exists()
    assert run(code) is None, "without a list it may write as its user may"


@needs_box
def test_descriptors_are_closed_but_those_that_are_kept() -> None:
    readable, writable = os.pipe()
    code = tries(
        "return sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}'))"
    )
    assert writable not in run(code, pass_fds=(writable,))
    kept = tries(f"os.write({writable}, b'hello')")
    run(kept, keep=(writable,), pass_fds=(writable,))
    os.close(writable)
    assert os.read(readable, 10) == b"hello"
    os.close(readable)


@needs_box
def test_it_exits_as_the_command_does(tmp_path: Path) -> None:
    def ends(code: str) -> int:
        argv = boxed(BoxSettings(), (sys.executable, "-c", code), tmp_path / "report.json")
        return subprocess.run(argv, check=False, timeout=LONG_S, capture_output=True).returncode

    assert ends("raise SystemExit(7)") == 7
    assert ends("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == -signal.SIGKILL
    assert ends("import os; os.abort()") == -signal.SIGABRT
    missing = boxed(BoxSettings(), ("no_such_program_anywhere",), tmp_path / "report.json")
    assert subprocess.run(missing, check=False, capture_output=True, timeout=LONG_S).returncode == box.CANNOT_START


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def outer_pids(mark: str) -> list[int]:
    """Processes, as numbered out here, whose command line has a word."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words:
            found.append(int(entry.parent.name))
    return found


@needs_box
@pytest.mark.parametrize("how", ["stop", "keeper", "box"])
def test_whoever_is_killed_nobody_is_left_behind(how: str, tmp_path: Path) -> None:
    mark = f"mark_{os.getpid()}_{how}"
    sleeper = (
        "import os, signal; os.fork(); signal.signal(2, signal.SIG_IGN); os.setsid() if os.getpid() > 2 else 0; "
        f"print(1, flush=True); signal.pause()  # {mark}"
    )
    argv = boxed(BoxSettings(), (sys.executable, "-c", sleeper, mark), tmp_path / "report.json")
    child = Child(Process("boxed", argv, os.environ, tmp_path / "log"))
    try:
        assert wait_until(lambda: (tmp_path / "log").read_text().count("1") == 2, LONG_S), child.tail()
        pids = outer_pids(mark)
        assert len(pids) >= 2
        if how == "keeper":
            os.kill(child.pid, signal.SIGKILL)
        elif how == "box":
            os.kill(min(p for p in pids if p != child.pid), signal.SIGKILL)
        else:
            child.stop(1.0)
        assert wait_until(lambda: not any(map(lives, pids)), LONG_S)
    finally:
        child.stop(1.0)


@needs_box
def test_what_is_left_when_the_command_ends_is_told_to_end(tmp_path: Path) -> None:
    told = tmp_path / "told"
    readable, writable = os.pipe()
    code = f"""
import os, signal
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: (open({str(told)!r}, "w").close(), os._exit(0)))
    os.write({writable}, b"x")
    while True:
        signal.pause()
os.read({readable}, 1)
"""
    argv = boxed(BoxSettings(), (sys.executable, "-c", code), tmp_path / "report.json", (readable, writable))
    assert subprocess.run(argv, check=False, timeout=LONG_S, pass_fds=(readable, writable)).returncode == 0
    os.close(readable)
    os.close(writable)
    assert told.exists()


def test_a_layer_that_is_missing_is_told_with_what_that_means(monkeypatch: pytest.MonkeyPatch) -> None:
    report = BoxReport({**dict.fromkeys(box.LAYERS, ""), "network": "Operation not permitted"})
    assert not report.whole
    (told,) = report.shortfalls
    assert "Operation not permitted" in told and "CAN" in told and told.startswith("no layer 'network'")
    assert set(WITHOUT) == set(box.LAYERS)


def without_layer(
    tmp_path: Path, name: str, required: bool, then: str = "print('ran')"
) -> subprocess.CompletedProcess[str]:
    """Run a box on a system that does not allow one layer."""
    code = (
        "import sys, json; from mt_nodes.runs.vehicle import box, layers\n"
        f"def refuse(*_): raise PermissionError(1, 'Operation not permitted')\nlayers.{name} = refuse\n"
        "box.main(json.loads(sys.argv[1]), sys.argv[2:])"
    )
    spec = json.dumps({"required": required, "report": str(tmp_path / "report.json")})
    argv = [sys.executable, "-c", code, spec, sys.executable, "-c", then]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=LONG_S)


@needs_box
@pytest.mark.parametrize(
    "name", ["network", "sockets", "own_proc", "own_mounts", "devices", "memory", "system", "privileges"]
)
def test_what_the_system_does_not_allow_is_refused_where_it_is_required_and_told_where_not(
    name: str, tmp_path: Path
) -> None:
    refused = without_layer(tmp_path, name, required=True)
    assert refused.returncode == ExitCode.ISOLATION and "ran" not in refused.stdout
    assert "does not allow" in refused.stderr and "not permitted" in refused.stderr
    ran = without_layer(tmp_path, name, required=False)
    assert (ran.returncode, ran.stdout) == (0, "ran\n")
    missing = {layer for layer, why in read_report(tmp_path / "report.json").missing.items() if why}
    of_mounts = {"devices", "memory", "processes", "system", "files"}
    # What /sys shows is a network's; that of others is not mounted anew.
    others = {"own_proc": {"processes"}, "own_mounts": of_mounts, "network": {"network", "system"}}
    assert missing == others.get(name, {name})


def test_devices_and_directories_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"box\.devices: got /dev/no_such.*expected a device file"):
        boxed(BoxSettings(devices=("/dev/no_such",)), ("true",), tmp_path / "r")
    with pytest.raises(UsageError, match=r"box\.devices"):
        boxed(BoxSettings(devices=("/etc/passwd",)), ("true",), tmp_path / "r")
    with pytest.raises(UsageError, match=r"box\.writable: got relative"):
        boxed(BoxSettings(writable=("relative",)), ("true",), tmp_path / "r")
    with pytest.raises(InfrastructureError, match="no report of a box"):
        read_report(tmp_path / "r")
