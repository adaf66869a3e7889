# SPDX-License-Identifier: Apache-2.0
"""Environment variables of child processes, ROS domains for a run, and leftovers of killed runs. Imports no ROS."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from mt_nodes.base.directories import own_temporary_directory
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.resources import config_dir

PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
#: The same setting, also by the name that Fast DDS 3 (ROS 2 Kilted and later) reads.
PROFILE_VARIABLES = (PROFILE_VARIABLE, "FASTDDS_DEFAULT_PROFILES_FILE")
SECURITY_VARIABLE, ENCLAVE_VARIABLE = "ROS_SECURITY_ENABLE", "ROS_SECURITY_ENCLAVE_OVERRIDE"
#: Enclave of the node by which a live run listens in the live domain.
TAP_ENCLAVE = "live_tap"
DISCOVERY_VARIABLE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
#: Keeps freed pages in the process: copying a cloud into fresh pages costs thirty times a copy into warm ones.
MALLOC_SETTINGS = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483647",
    "MALLOC_TOP_PAD_": "67108864",
}
#: Of processes that make follow-ups: OpenCV's threads add a sixth to the processor time of a picture, which is taken
#: from the stack beside them, and take nothing off its duration.
SUITE_SETTINGS = {"OPENCV_FOR_THREADS_NUM": "1"}
#: How often free pages go back to the system: seldom, since those that are used again are faulted in anew.
RETURN_EVERY_S = 60.0
_RETURNS = threading.Event()
#: From domain 102 on, discovery ports lie in the range that Linux assigns to any program.
DOMAINS = range(1, 102)
#: So often ports of a domain are looked at before it is taken for occupied.
_LOOKS = 3
SHARED_MEMORY = Path("/dev/shm")

#: The same settings by their ``mallopt`` numbers (glibc's malloc.h), for a process that already runs.
_MALLOPT = {-3: "MALLOC_MMAP_THRESHOLD_", -1: "MALLOC_TRIM_THRESHOLD_", -2: "MALLOC_TOP_PAD_"}

#: Keys of services that no stack uses: they would come into its log, which results hold.
SECRET_VARIABLES = ("MT_LLM_KEY",)
_BOOTSTRAP_GUARD = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
_OURS = "MT_NODES_ENVIRONMENT"
_SEGMENT = re.compile(r"fastrtps_[0-9a-f]{16}")


def profile_path() -> Path:
    """Return the Fast DDS profile that ships with the package."""
    return config_dir() / "dds" / "fastdds_profile.xml"


def ros_environment(base: Mapping[str, str], domain_id: int | None = None) -> dict[str, str]:
    """Return the environment of this package's own nodes: DDS profile, discovery range, memory settings.

    Variables that ``base`` sets are the user's and stay. Only ``domain_id``, if given, replaces ``ROS_DOMAIN_ID``,
    because an arm in the user's domain would not be isolated. One variable lists the names set here, so that
    :func:`user_environment` can tell them from the user's.
    """
    return _with_defaults(base, {**_transport(base), **MALLOC_SETTINGS}, domain_id)


def suite_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that carries out a run: as of our nodes, with :data:`SUITE_SETTINGS`."""
    return _with_defaults(ros_environment(base), SUITE_SETTINGS, None)


def without_secrets(base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that hosts code of the user's: without what is a suite's alone."""
    of_suite = SUITE_SETTINGS.keys() & set(base.get(_OURS, "").split(","))
    return {name: value for name, value in base.items() if name not in SECRET_VARIABLES and name not in of_suite}


def keep_freed_memory() -> None:
    """Apply the memory settings of :func:`ros_environment` to this process; glibc only."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for number, name in _MALLOPT.items():
        if mallopt is not None and not os.environ.get(name):
            mallopt(number, int(MALLOC_SETTINGS[name]))


def return_freed_memory() -> None:
    """Return freed pages to the system from now on, once a minute from a thread; glibc only.

    Without it a process that keeps them is as large as its busiest moment left it, and grows for hours: each backlog
    (a stack that died) reaches a little further than those before.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None and not _RETURNS.is_set():
        _RETURNS.set()
        threading.Thread(target=_return_freed_pages, args=(malloc_trim,), name="freed-memory", daemon=True).start()


def _return_freed_pages(malloc_trim: Callable[[int], int]) -> None:
    while True:
        time.sleep(RETURN_EVERY_S)
        malloc_trim(0)


def user_environment(base: Mapping[str, str], domain_id: int | None = None) -> dict[str, str]:
    """Return the environment of a user's stack, without what the ROS wheels' bootstrapper and this package added.

    Drops the bootstrapper's additions (its guard, its entries of ``LD_LIBRARY_PATH``), keys of services, and the
    variables of :func:`ros_environment`, then adds the DDS profile and the discovery range where the user sets none:
    without them large messages get lost. ``domain_id`` as in :func:`ros_environment`.
    """
    ours = base.get(_OURS, "").split(",")
    clean = {name: value for name, value in base.items() if name not in (*ours, _OURS, *SECRET_VARIABLES)}
    if clean.pop(_BOOTSTRAP_GUARD, None):
        libraries = [p for p in clean.pop("LD_LIBRARY_PATH", "").split(os.pathsep) if p and not _from_bootstrapper(p)]
        if libraries:
            clean["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    return _with_defaults(clean, _transport(clean), domain_id)


def use_enclave(name: str) -> None:
    """Have the nodes that this process makes from now on use an enclave of their own, where SROS 2 is switched on.

    What the user says stays: ``--enclave`` of a command line, ``ROS_SECURITY_ENCLAVE_OVERRIDE`` of the environment.
    """
    ours = [other for other in os.environ.get(_OURS, "").split(",") if other]
    given = os.environ.get(ENCLAVE_VARIABLE) and ENCLAVE_VARIABLE not in ours
    if os.environ.get(SECURITY_VARIABLE) == "true" and not given and "--enclave" not in sys.argv:
        os.environ[ENCLAVE_VARIABLE] = f"/mt_nodes/{name}"
        os.environ[_OURS] = ",".join(sorted({*ours, ENCLAVE_VARIABLE}))


@contextlib.contextmanager
def enclave(name: str) -> Iterator[None]:
    """Have the contexts that the block initialises use this enclave, and later ones that of before."""
    before = {variable: os.environ.get(variable) for variable in (ENCLAVE_VARIABLE, _OURS)}
    use_enclave(name)
    try:
        yield
    finally:
        for variable, value in before.items():
            os.environ.pop(variable, None)
            os.environ.update({variable: value} if value is not None else {})


def user_domain(base: Mapping[str, str]) -> int:
    """Return the user's ``ROS_DOMAIN_ID``, 0 when unset. Raises UsageError: it is not a number from 0 to 232."""
    text = base.get("ROS_DOMAIN_ID", "") or "0"
    if not (text.isascii() and text.isdigit() and int(text) <= 232):
        raise UsageError(f"ROS_DOMAIN_ID: got '{text}', expected a number from 0 to 232 (0 to 101 on Linux); unset it")
    return int(text)


class DomainLease:
    """ROS domain ids that no other run of this user takes while this object, or this process, lives."""

    def __init__(self, locks: Mapping[int, int]) -> None:
        """Take over open, locked file descriptors by domain id."""
        self._locks = dict(locks)

    @property
    def domains(self) -> tuple[int, ...]:
        """The ids, in the order in which they were leased."""
        return tuple(self._locks)

    def close(self) -> None:
        """Give the domains back; may be called twice."""
        while self._locks:
            os.close(self._locks.popitem()[1])

    def __enter__(self) -> DomainLease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def free_domains(count: int, exclude: Collection[int] = ()) -> DomainLease:
    """Lease domain ids in 1..101 that no other run leases and whose discovery ports are free on this machine.

    ``count``: how many. ``exclude``: ids never to lease, in addition to this process's ``ROS_DOMAIN_ID``.
    Raises InfrastructureError: fewer are free.
    """
    avoid = {*exclude, user_domain(os.environ)}
    directory = own_temporary_directory("mt_nodes")
    locks: dict[int, int] = {}
    # In random order, so that a run seldom gets the domain that another has just left; and more than once, because a
    # run of another user, whose locks are elsewhere, may just be looking at the ports of one that is free.
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)) * _LOOKS:
        if len(locks) == count:
            break
        lock = None if domain in {*avoid, *locks} else _locked(directory / f"domain_{domain}.lock", os.O_CREAT)
        if lock is not None and _ports_are_free(domain):
            locks[domain] = lock
        elif lock is not None:
            os.close(lock)
    lease = DomainLease(locks)
    if len(locks) < count:
        lease.close()
        raise InfrastructureError(
            f"got {len(locks)} free ROS domains in {DOMAINS[0]}..{DOMAINS[-1]}, needed {count}; "
            "end other ROS 2 programs of this machine, or other mt runs"
        )
    return lease


def leftovers(older_than_s: float = 2.0) -> list[Path]:
    """List this user's shared-memory segments whose Fast DDS process is gone, as paths in ``/dev/shm``."""
    found = []
    for segment, lock in _orphans(older_than_s):
        os.close(lock)
        found.append(segment)
    return found


def clean_shared_memory(older_than_s: float = 2.0) -> int:
    """Remove the shared-memory segments that killed processes of this user left behind; return how many.

    A live owner holds a lock on ``<segment>_el``, so only segments whose lock is free are removed, with the lock held.
    ``older_than_s`` spares a process that has created its lock file and is about to lock it.
    """
    count = 0
    for segment, lock in _orphans(older_than_s):
        with contextlib.suppress(FileNotFoundError):
            segment.unlink()
            count += 1
        _lock_file(segment).unlink(missing_ok=True)
        os.close(lock)
    return count


def _transport(base: Mapping[str, str]) -> dict[str, str]:
    """Return discovery range and profile; a user's profile counts under either name."""
    has_profile = any(base.get(name) for name in PROFILE_VARIABLES)
    profile = {} if has_profile else dict.fromkeys(PROFILE_VARIABLES, str(profile_path()))
    return {**profile, DISCOVERY_VARIABLE: "LOCALHOST"}


def _with_defaults(base: Mapping[str, str], defaults: Mapping[str, str], domain_id: int | None) -> dict[str, str]:
    added = {name: value for name, value in defaults.items() if not base.get(name)}
    if domain_id is not None:
        added["ROS_DOMAIN_ID"] = str(domain_id)
    ours = {name for name in base.get(_OURS, "").split(",") if name} | set(added)
    return {**base, **added, _OURS: ",".join(sorted(ours))}


def _from_bootstrapper(entry: str) -> bool:
    """Whether the ROS wheels' bootstrapper added this directory to ``LD_LIBRARY_PATH``."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library, path = Path(sys.prefix) / "lib", Path(entry).resolve()
    packages = (library / version / "site-packages").resolve()
    return path == library.resolve() or (path.parent == packages and path.match("ros_*.libs"))


def _locked(path: Path, flags: int = 0) -> int | None:
    """Return a descriptor that holds the file's lock, or None if another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _ports_are_free(domain: int) -> bool:
    """Whether no DDS participant listens: multicast port, unicast ports of the first ten participants (RTPS 9.6.1)."""
    base = 7400 + 250 * domain
    return all(_port_is_free(port) for port in (base, *(base + 10 + 2 * participant for participant in range(10))))


def _port_is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def _orphans(older_than_s: float) -> Iterator[tuple[Path, int]]:
    """Yield each segment without an owner, and the descriptor that holds its lock; the caller closes it."""
    for segment in sorted(SHARED_MEMORY.glob("fastrtps_*")):
        if not _SEGMENT.fullmatch(segment.name):
            continue
        lock = None
        with contextlib.suppress(OSError):  # it went away meanwhile, or is still without its lock file
            about = _lock_file(segment).stat()
            if about.st_uid == os.getuid() and about.st_mtime < time.time() - older_than_s:
                lock = _locked(_lock_file(segment))
        if lock is not None:
            yield segment, lock


def _lock_file(segment: Path) -> Path:
    return segment.with_name(f"{segment.name}_el")
