# SPDX-License-Identifier: Apache-2.0
"""What cuts a process off from the vehicle: each layer is a function that puts it up here, or raises OSError.

What they are for is said in :mod:`mt_nodes.runs.vehicle.box`. Linux only, by its own calls (namespaces(7), seccomp(2),
capabilities(7)); imports nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NEW_NS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 8, 32, 4096, 16384, 1 << 18
_QUIET = _NOSUID | _NOEXEC
_SETS_ATTRIBUTES, _WHOLE_TREE, _ATTRIBUTE_RDONLY, _ATTRIBUTE_NODEV, _AT_FDCWD = 442, 0x8000, 1, 4, -100
_SETS_SECCOMP, _DROPS_CAPABILITY, _SETS_NO_NEW_PRIVILEGES = 22, 24, 38
_SETS_FLAGS_OF_INTERFACE, _UP, _LOOPBACK, _MULTICAST = 0x8914, 0x1, 0x8, 0x1000
_CAPABILITIES_3 = 0x20080522
_IO_URING, _CLONE3 = 425, 435
#: Requests of ``ioctl`` that type into a terminal: whoever reads there next would carry it out.
_TYPES = (0x5412, 0x541C)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
#: Below ``/proc``, what changes the computer.
_SWITCHES = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


@dataclass(frozen=True)
class _Machine:
    """Number of a machine in audit records, those of its calls, and where numbers of another ABI begin."""

    audit: int
    other_abi: int
    socket: int
    ioctl: int
    clone: int
    unshare: int
    keys: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 0x40000000, 41, 16, 56, 272, (248, 249, 250)),
    "aarch64": _Machine(0xC00000B7, 0xFFFFFFFF, 198, 29, 220, 97, (217, 218, 219)),
}

libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())


def _set_process(what: int, *arguments: object) -> None:
    _call("prctl", what, *arguments, *[ctypes.c_ulong(0)] * (4 - len(arguments)))


def own_mounts() -> None:
    """See mounts of one's own from here on; what others mount is not seen, nor they what is mounted here.

    Who may not is given a user namespace, in which he is the same user and has the rights that the other layers take.
    """
    try:
        _call("unshare", _NEW_NS)
    except PermissionError:
        _own_user()
        _call("unshare", _NEW_NS)
    _mount("none", "/", flags=_REC | _PRIVATE)


def _own_user() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_USER)
    for name, text in {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}.items():
        Path("/proc/self", name).write_text(text, encoding="ascii")


def network() -> None:
    """Have a network of one's own in which loopback alone is up."""
    _call("unshare", _NEW_NET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        up = struct.pack("16sh22x", b"lo", _UP | _LOOPBACK | _MULTICAST)
        fcntl.ioctl(any_socket, _SETS_FLAGS_OF_INTERFACE, up)


def number_processes() -> None:
    """Have the children from now on numbered anew: they see nobody else once :func:`own_proc` is there."""
    _call("unshare", _NEW_PID)


def own_proc() -> None:
    """Show in ``/proc`` the processes that were numbered anew."""
    _mount("proc", "/proc", "proc", _QUIET)


def files(writable: Sequence[str]) -> None:
    """Make everything that is mounted read-only but what is named, if anything is; before other mounts of one's own."""
    if not writable:
        return
    for path in writable:
        _mount(path, path, flags=_BIND | _REC)
    _set_attributes("/", _ATTRIBUTE_RDONLY, 0)
    for path in writable:
        _set_attributes(path, 0, _ATTRIBUTE_RDONLY)


def _set_attributes(path: str, added: int, cleared: int, below: int = _WHOLE_TREE) -> None:
    attributes = struct.pack("4Q", added, cleared, 0, 0)
    arguments = (_AT_FDCWD, path.encode(), below, attributes, ctypes.c_size_t(len(attributes)))
    _call("syscall", ctypes.c_long(_SETS_ATTRIBUTES), *arguments)


def devices(named: Sequence[str]) -> None:
    """Cover ``/dev``; put into it what everybody needs, and what is named; device files elsewhere are none."""
    _set_attributes("/", _ATTRIBUTE_NODEV, 0)
    opened = {path: os.open(path, os.O_PATH) for path in (*(f"/dev/{name}" for name in _DEVICES), *named)}
    _mount("tmpfs", "/dev", "tmpfs", _QUIET, "mode=755")
    for path, descriptor in opened.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
        _mount(f"/proc/self/fd/{descriptor}", path, flags=_BIND)
        _set_attributes(path, 0, _ATTRIBUTE_NODEV, below=0)
        os.close(descriptor)
    for name, target in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        Path("/dev", name).symlink_to(f"/proc/self/{target}")
    Path("/dev/pts").mkdir()
    _mount("devpts", "/dev/pts", "devpts", _QUIET, "newinstance,ptmxmode=0666,mode=620")
    Path("/dev/ptmx").symlink_to("pts/ptmx")


def named_sockets() -> tuple[str, ...]:
    """Return the paths of Unix sockets that are there now; to be asked before :func:`network`, which shows its own."""
    text = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape")
    rows = (line.split(maxsplit=7) for line in text.splitlines())  # the last column is the path, of those that have one
    return tuple({row[7] for row in rows if len(row) == 8 and row[7].startswith("/")})


def memory(sockets: Sequence[str]) -> None:
    """Have shared memory and message queues of one's own, nothing of what services keep in ``/run``, no named sockets.

    ``sockets``: paths that are covered, where they can be reached at all.
    """
    _call("unshare", _NEW_IPC)
    Path("/dev/shm").mkdir(exist_ok=True)
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID, "mode=1777")
    if Path("/run").is_dir():
        _mount("tmpfs", "/run", "tmpfs", _NOSUID, "mode=755")
    for path in sockets:
        with suppress(FileNotFoundError, PermissionError):  # who cannot come to it cannot connect
            if Path(path).is_socket():
                _mount("/dev/null", path, flags=_BIND)


def system() -> None:
    """Let ``/sys`` and the switches in ``/proc`` be read only."""
    _mount("sysfs", "/sys", "sysfs", _RDONLY | _QUIET)
    for path in (f"/proc/{name}" for name in _SWITCHES):
        if Path(path).exists():
            _mount(path, path, flags=_BIND | _REC)
            _mount(path, path, flags=_BIND | _REMOUNT | _RDONLY | _QUIET)


def privileges() -> None:
    """Give up every capability for good."""
    capability = 0
    while libc.prctl(_DROPS_CAPABILITY, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1
    if (number := ctypes.get_errno()) != errno.EINVAL:  # which says that there is no further one
        raise OSError(number, f"capability {capability}: {os.strerror(number)}")
    _call("capset", struct.pack("Ii", _CAPABILITIES_3, 0), bytes(24))
    _set_process(_SETS_NO_NEW_PRIVILEGES, ctypes.c_ulong(1))


def sockets() -> None:
    """Have the kernel refuse all but four families of sockets, and what leads past this box or out of it.

    That is io_uring, by which sockets could be had, too; user namespaces, which give every capability back in what
    is made there; typing into terminals; keys that are kept for all processes of a user.
    Raises OSError: or this kind of machine is not known.
    """
    if os.uname().machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"not known which calls a {os.uname().machine} has")
    rows = _filter(_MACHINES[os.uname().machine])
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code))
    _set_process(_SETS_NO_NEW_PRIVILEGES, ctypes.c_ulong(1))
    _set_process(_SETS_SECCOMP, ctypes.c_ulong(2), ctypes.c_char_p(program))


def _filter(machine: _Machine) -> tuple[tuple[int, int, int, int], ...]:
    """Return a program of classic BPF (``linux/filter.h``, ``linux/seccomp.h``): code, jumps if true and not, number.

    Calls of another machine's ABI are refused, since their numbers mean other calls, and so is ``clone3``, whose flags
    no filter can read; libraries take ``clone`` then. Of arguments the lower half counts, as for the kernel.
    """
    load, equal, least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allowed, missing = (give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x50000 | errno.ENOSYS)
    refused, no_family = (give, 0, 0, 0x50000 | errno.EPERM), (give, 0, 0, 0x50000 | errno.EAFNOSUPPORT)
    number, first, second = (load, 0, 0, 0), (load, 0, 0, 16), (load, 0, 0, 24)
    return (
        *((load, 0, 0, 4), (equal, 1, 0, machine.audit), missing),
        *(number, (least, 0, 1, machine.other_abi), missing),
        *(row for call in (_IO_URING, _CLONE3, *machine.keys) for row in ((equal, 0, 1, call), missing)),
        *((equal, 1, 0, machine.clone), (equal, 0, 4, machine.unshare)),
        *(first, (any_bit, 0, 1, _NEW_USER), refused, allowed),
        *((equal, 0, 2 + 2 * len(_TYPES), machine.ioctl), second),
        *(row for request in _TYPES for row in ((equal, 0, 1, request), refused)),
        *(allowed, (equal, 1, 0, machine.socket), allowed, first),
        *(row for family in _FAMILIES for row in ((equal, 0, 1, int(family)), allowed)),
        no_family,
    )
