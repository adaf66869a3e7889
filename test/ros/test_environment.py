# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from mt_nodes.base import environment
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.runs import doctor

PACKAGES = Path(sys.prefix) / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

ALL_DOMAINS = environment.DOMAINS


@pytest.fixture(scope="module")
def leased() -> Iterator[tuple[int, ...]]:
    """Twelve domains that are ours on this machine, whoever else runs there; taken where everybody takes them."""
    with environment.free_domains(12) as lease:
        yield lease.domains


@pytest.fixture(autouse=True)
def own_places(leased: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks and shared memory in a directory of the test, its domains ours; a config whatever else is in the tree."""
    profile = Path(__file__).resolve().parents[2] / "config" / "dds" / "fastdds_profile.xml"
    monkeypatch.setattr(environment, "profile_path", lambda: profile)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(environment, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(environment, "DOMAINS", leased)
    return tmp_path


# --- what processes start with


def test_own_nodes_get_every_setting() -> None:
    env = environment.ros_environment({"HOME": "/home/me"}, 17)
    assert env["HOME"] == "/home/me"
    assert Path(env["FASTRTPS_DEFAULT_PROFILES_FILE"]).is_file()
    assert env["FASTDDS_DEFAULT_PROFILES_FILE"] == env["FASTRTPS_DEFAULT_PROFILES_FILE"]
    assert env["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert env["ROS_DOMAIN_ID"] == "17"
    assert {name: env[name] for name in environment.MALLOC_SETTINGS} == environment.MALLOC_SETTINGS


@pytest.mark.parametrize(
    "name", ["FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE", *environment.MALLOC_SETTINGS]
)
def test_what_the_user_set_stays(name: str) -> None:
    assert environment.ros_environment({name: "mine"})[name] == "mine"
    assert environment.user_environment(environment.ros_environment({name: "mine"}))[name] == "mine"


def test_a_users_profile_under_either_name_is_the_only_one() -> None:
    for own, other in (environment.PROFILE_VARIABLES, environment.PROFILE_VARIABLES[::-1]):
        assert other not in environment.ros_environment({own: "mine.xml"})


def test_an_empty_profile_counts_as_unset() -> None:
    assert environment.ros_environment({"FASTRTPS_DEFAULT_PROFILES_FILE": ""})["FASTRTPS_DEFAULT_PROFILES_FILE"]


def test_an_arm_never_inherits_the_users_domain() -> None:
    assert environment.ros_environment({"ROS_DOMAIN_ID": "5"}, 40)["ROS_DOMAIN_ID"] == "40"
    assert environment.user_environment({"ROS_DOMAIN_ID": "5"}, 40)["ROS_DOMAIN_ID"] == "40"
    assert environment.ros_environment({"ROS_DOMAIN_ID": "5"})["ROS_DOMAIN_ID"] == "5"


def test_a_users_stack_gets_the_environment_from_before_the_bootstrapper() -> None:
    libraries = [
        PACKAGES / "ros_rcl.libs",
        Path("/opt/mine/lib"),
        Path(sys.prefix) / "lib",
        PACKAGES / "ros_rclpy.libs",
    ]
    base = {"LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)), "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1", "A": "b"}
    env = environment.user_environment(environment.ros_environment(base, 3))
    assert env["LD_LIBRARY_PATH"] == "/opt/mine/lib"
    assert "_ROS_WHEELS_BOOTSTRAP_COMPLETE" not in env
    assert env["A"] == "b"
    assert not set(environment.MALLOC_SETTINGS) & set(env)
    assert env["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert Path(env["FASTRTPS_DEFAULT_PROFILES_FILE"]).is_file()


def test_a_library_path_of_the_bootstrapper_alone_disappears() -> None:
    base = {"LD_LIBRARY_PATH": str(Path(sys.prefix) / "lib"), "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1"}
    assert "LD_LIBRARY_PATH" not in environment.user_environment(base)


def test_without_the_bootstrapper_the_library_path_is_the_users() -> None:
    base = {"LD_LIBRARY_PATH": str(Path(sys.prefix) / "lib")}
    assert environment.user_environment(base)["LD_LIBRARY_PATH"] == base["LD_LIBRARY_PATH"]


def test_the_bootstrapper_really_adds_what_is_dropped() -> None:
    """Runs the real one, where it is installed, in a clean environment."""
    pytest.importorskip("ros_wheels_bootstrapper")
    code = (
        "import os; from mt_nodes.base.environment import user_environment as u; assert os.environ['LD_LIBRARY_PATH'];"
        "assert '_ROS_WHEELS_BOOTSTRAP_COMPLETE' in os.environ; print(u(os.environ).get('LD_LIBRARY_PATH'))"
    )
    clean = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/opt/mine/lib"}
    clean["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    code = code.replace("import os;", "import os, mt_nodes.base.environment as e; e.profile_path = lambda: '';")
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("/opt/mine/lib", 0), done.stderr


def test_the_profile_carries_large_messages_and_stays_on_loopback() -> None:
    transports: dict[str, dict[str, ET.Element]] = {}
    for transport in ET.parse(environment.profile_path()).findall(".//{*}transport_descriptor"):
        parts = {part.tag.rpartition("}")[2]: part for part in transport}
        transports[str(parts["type"].text)] = parts
    shared = transports["SHM"]
    assert int(shared["segment_size"].text or 0) == doctor.SEGMENT_BYTES > int(shared["maxMessageSize"].text or 0) > 8e6
    assert [a.text for a in transports["UDPv4"]["interfaceWhiteList"]] == ["127.0.0.1"]


# --- domains


def test_domains_are_distinct_in_range_and_never_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "DOMAINS", ALL_DOMAINS)
    monkeypatch.setattr("tempfile.tempdir", None)  # the locks of this machine, lest we try a port that another needs
    monkeypatch.setenv("ROS_DOMAIN_ID", "42")
    with environment.free_domains(40, exclude={7}) as lease:
        assert len(set(lease.domains)) == 40
        assert set(lease.domains) <= set(range(1, 102)) - {7, 42}


def test_a_closed_lease_frees_its_domains(leased: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "DOMAINS", leased[:2])
    with environment.free_domains(2), pytest.raises(InfrastructureError, match=r"got 0 free .* needed 1"):
        environment.free_domains(1)
    with environment.free_domains(2) as again:
        assert set(again.domains) == set(leased[:2])


def test_a_refused_lease_keeps_nothing(leased: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "DOMAINS", leased[:2])
    with pytest.raises(InfrastructureError):
        environment.free_domains(3)
    with environment.free_domains(2) as lease:
        assert len(lease.domains) == 2


@pytest.mark.parametrize("offset", [0, 10, 12, 28])
def test_a_domain_whose_discovery_port_is_taken_is_passed_over(
    offset: int, leased: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "DOMAINS", leased[:2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
        participant.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        participant.bind(("127.0.0.1", 7400 + 250 * leased[0] + offset))
        with environment.free_domains(1) as lease:
            assert lease.domains == leased[1:2]


def test_concurrent_runs_never_share_a_domain_and_a_killed_one_frees_its_own(
    leased: tuple[int, ...], own_places: Path
) -> None:
    code = (
        f"import sys; from mt_nodes.base import environment as e; e.DOMAINS = {leased};"
        "lease = e.free_domains(4); print(*lease.domains, flush=True); sys.stdin.read()"
    )
    env = {**os.environ, "TMPDIR": str(own_places), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code]
    runs = [subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    try:
        taken = [int(word) for run in runs if run.stdout for word in run.stdout.readline().split()]
        assert sorted(taken) == sorted(leased)
        runs[0].kill()
        runs[0].wait()
        with environment.free_domains(4) as lease:
            assert set(lease.domains) == set(taken[:4])
    finally:
        for run in runs:
            run.kill()
            run.communicate()


def test_a_port_that_somebody_looks_at_for_a_moment_is_no_reason_to_find_none(
    leased: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    free, asked = environment._ports_are_free, []

    def looked_at_twice(domain: int) -> bool:
        asked.append(domain)
        return len(asked) > 2 and free(domain)

    monkeypatch.setattr(environment, "_ports_are_free", looked_at_twice)
    with environment.free_domains(len(leased)) as lease:
        assert sorted(lease.domains) == sorted(leased)


@pytest.mark.parametrize("text", ["abc", "-1", "233", "4.5", "²"])
def test_a_domain_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a number from 0 to 232"):
        environment.user_domain({"ROS_DOMAIN_ID": text})
    assert doctor.check_domain({"ROS_DOMAIN_ID": text}).level == "error"


def test_a_lock_directory_of_somebody_else_is_refused(own_places: Path) -> None:
    (own_places / "elsewhere").mkdir()
    (own_places / f"mt_nodes-{os.getuid()}").symlink_to(own_places / "elsewhere")
    with pytest.raises(InfrastructureError, match="remove it"):
        environment.free_domains(1)


def test_a_lock_directory_that_others_may_write_to_is_refused(own_places: Path) -> None:
    (own_places / f"mt_nodes-{os.getuid()}").mkdir()
    (own_places / f"mt_nodes-{os.getuid()}").chmod(0o777)
    with pytest.raises(InfrastructureError, match="others may write to it"):
        environment.free_domains(1)


# --- shared memory


FREES = """
import time
from mt_nodes.base import environment

def memory_kb():
    return next(int(row.split()[1]) for row in open("/proc/self/status") if row.startswith("RssAnon"))

environment.keep_freed_memory()
environment.RETURN_EVERY_S = 0.01
pages = [(bytes(60_000), bytes(400)) for _ in range(1_000)]
between = [small for _, small in pages]  # of what lies between these the system gets nothing by itself
full_kb = memory_kb()
del pages
assert memory_kb() > full_kb - 10_000, "nothing to return"
if RETURNS:
    environment.return_freed_memory()
    environment.return_freed_memory()
ends_s = time.monotonic() + 10.0 * RETURNS
while memory_kb() > full_kb - 40_000 and time.monotonic() < ends_s:
    time.sleep(0.01)
print(memory_kb() > full_kb - 40_000)
"""


@pytest.mark.parametrize("returns", [True, False])
def test_freed_memory_goes_back_to_the_system(returns: bool) -> None:
    code = f"RETURNS = {returns}\n{FREES}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"{not returns}\n", done.stderr


def make_segment(place: Path, name: str, age_s: float = 60.0, lock: bool = True) -> Path:
    segment = place / name
    segment.write_bytes(b"x" * 1000)
    if lock:
        environment._lock_file(segment).touch()
        os.utime(environment._lock_file(segment), (time.time() - age_s,) * 2)
    return segment


def test_only_segments_without_an_owner_are_removed(own_places: Path) -> None:
    dead = make_segment(own_places, "fastrtps_0123456789abcdef")
    kept = [
        make_segment(own_places, "fastrtps_aaaaaaaaaaaaaaaa"),  # its owner holds the lock
        make_segment(own_places, "fastrtps_bbbbbbbbbbbbbbbb", age_s=0.0),  # about to be locked
        make_segment(own_places, "fastrtps_cccccccccccccccc", lock=False),  # not yet with a lock file
        make_segment(own_places, "fastrtps_port7411"),  # shared between processes; Fast DDS repairs it itself
        make_segment(own_places, "other_0123456789abcdef"),
    ]
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX);print(1, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(environment._lock_file(kept[0]))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout and owner.stdout.readline()
        assert environment.leftovers() == [dead]
        assert environment.clean_shared_memory() == 1
        owner.communicate()
    assert not dead.exists() and not environment._lock_file(dead).exists()
    assert all(path.exists() for path in kept)
    assert environment.clean_shared_memory() == 1  # the owner is gone now
    assert not kept[0].exists()


def test_looking_does_not_keep_the_lock(own_places: Path) -> None:
    segment = make_segment(own_places, "fastrtps_0123456789abcdef")
    assert environment.leftovers() == [segment]
    with environment._lock_file(segment).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of the test where there is shared memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        monkeypatch.setattr(environment, "SHARED_MEMORY", Path(path))
        yield Path(path)


def test_a_killed_node_leaves_a_segment_that_is_cleaned_and_a_live_one_is_left_alone(shared: Path) -> None:
    pytest.importorskip("rclpy")
    code = (
        "import rclpy, sys; rclpy.init(); node = rclpy.create_node('n');"
        "print(open('/proc/self/maps').read(), flush=True); sys.stdin.read()"
    )
    with environment.free_domains(1) as lease:
        env = environment.ros_environment(os.environ, lease.domains[0])
        pipe = subprocess.PIPE
        node = subprocess.Popen([sys.executable, "-c", code], env=env, stdin=pipe, stdout=pipe, text=True)
        assert node.stdout
        paths = (Path(line.split()[-1]) for line in node.stdout if "/dev/shm/fastrtps_" in line)
        theirs = next(path for path in paths if environment._SEGMENT.fullmatch(path.name))
        # Under names of our own, which no other run on this machine tidies away; the lock is that of the file.
        segment = shared / theirs.name
        segment.hardlink_to(theirs)
        environment._lock_file(segment).hardlink_to(environment._lock_file(theirs))
        os.utime(environment._lock_file(segment), (0, 0))
        assert environment.leftovers() == []
        node.kill()
        node.communicate()
    assert environment.leftovers() == [segment]
    assert environment.clean_shared_memory() == 1
    assert not any(shared.iterdir())
    theirs.unlink(missing_ok=True)
    environment._lock_file(theirs).unlink(missing_ok=True)


# --- doctor


def test_a_sound_machine_has_no_errors() -> None:
    findings = doctor.diagnose({}, probe=False)
    errors = [f for f in findings if f.level == "error" and f.title not in ("packages", "Python", "shared memory")]
    assert errors == []
    assert {f.title for f in findings} >= {
        "Python",
        "DDS profile",
        "ROS domains",
        "shared memory",
        "leftovers",
        "clocks",
    }


def test_every_error_and_warning_says_more_than_its_title() -> None:
    findings = [
        doctor.check_python((3, 13)),
        doctor.check_profile({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}),
        doctor.check_profile({"FASTRTPS_DEFAULT_PROFILES_FILE": "/nowhere.xml"}),
        doctor.check_discovery({"ROS_LOCALHOST_ONLY": "1"}),
        doctor.check_discovery({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}),
        doctor.check_domain({"ROS_DOMAIN_ID": "150"}),
        doctor.check_shared_memory(64 * doctor.MIB),
        doctor.check_clock(0.0, 1e-9),
        doctor.check_clock(2e9, 1e-3),
    ]
    assert [f.level for f in findings] == ["error", "warn", "error", "warn", "warn", "warn", "error", "error", "warn"]
    assert all(f.detail and f.detail != f.title for f in findings)
    assert all(f.fix for f in findings if f.level == "error")
    assert doctor.worst(findings) == "error"


def test_worst_of_nothing_is_ok() -> None:
    assert doctor.worst([]) == "ok"
    assert doctor.worst([doctor.Finding("info", "a", "b"), doctor.Finding("warn", "a", "b")]) == "warn"


def test_a_profile_with_a_small_segment_is_warned_of(own_places: Path) -> None:
    small = own_places / "small.xml"
    small.write_text(environment.profile_path().read_text().replace("67108864", "1048576"))
    finding = doctor.check_profile({"FASTRTPS_DEFAULT_PROFILES_FILE": str(small)})
    assert finding.level == "warn" and "1 MiB" in finding.detail
    small.write_text("<profiles><transport_descriptors/></profiles>")
    assert "0.5 MiB" in doctor.check_profile({"FASTDDS_DEFAULT_PROFILES_FILE": str(small)}).detail
    shipped = {"FASTRTPS_DEFAULT_PROFILES_FILE": str(environment.profile_path())}
    assert doctor.check_profile(shipped).level == "ok"
    small.write_text("not xml")
    assert doctor.check_profile({"FASTRTPS_DEFAULT_PROFILES_FILE": str(small)}).level == "error"


def test_leftovers_are_counted(own_places: Path) -> None:
    segment = make_segment(own_places, "fastrtps_0123456789abcdef")
    assert doctor.check_leftovers([segment]).level == "warn"
    assert doctor.check_leftovers([]).level == "ok"


def test_a_memory_setting_of_the_user_is_told_of() -> None:
    assert doctor.check_malloc({"MALLOC_TOP_PAD_": "1"}).level == "info"
    assert doctor.check_malloc(environment.MALLOC_SETTINGS).level == "ok"


def test_a_directory_is_no_package(monkeypatch: pytest.MonkeyPatch, own_places: Path) -> None:
    (own_places / "launch_ros").mkdir()
    monkeypatch.syspath_prepend(str(own_places))
    assert doctor._present("numpy")
    assert doctor._present("rosbags.highlevel.anyreader")
    assert not doctor._present("no_such_package.inside")
    if doctor.importlib.util.find_spec("launch_ros").origin is None:  # type: ignore[union-attr]
        assert not doctor._present("launch_ros")


@pytest.mark.parametrize(
    ("change", "levels"),
    [
        ({}, ["ok", "ok", "ok"]),
        ({"segment_bytes": 0}, ["ok", "error", "ok"]),
        ({"segment_bytes": 549408}, ["ok", "warn", "ok"]),
        ({"round_trips_ms": [2.0] * 9}, ["ok", "ok", "error"]),
        ({"round_trips_ms": [500.0] * 10}, ["ok", "ok", "warn"]),
        ({"rmw": "rmw_cyclonedds_cpp", "segment_bytes": 0}, ["ok", "ok"]),
    ],
)
def test_what_the_probe_saw_is_judged(change: dict[str, object], levels: list[str]) -> None:
    seen = {
        "rmw": "rmw_fastrtps_cpp",
        "segment_bytes": 70_255_136,
        "sent": 10,
        "bytes": 2_000_000,
        "round_trips_ms": [2.0] * 10,
    }
    assert [f.level for f in doctor.judge_transport({**seen, **change})] == levels


def test_the_probe_sends_through_shared_memory() -> None:
    pytest.importorskip("rclpy")
    findings = list(doctor.check_transport(os.environ))
    assert [f.level for f in findings if f.title != "transport"] == ["ok", "ok"], findings
    assert findings[-1].level in ("ok", "warn"), findings


def test_a_profile_without_shared_memory_is_found_out(own_places: Path) -> None:
    """The probe can fail: beside UDP only rmw's own small segment is left."""
    pytest.importorskip("rclpy")
    udp = own_places / "udp.xml"
    text = environment.profile_path().read_text()
    udp.write_text(text.replace("<transport_id>mt_shared_memory</transport_id>\n        <", "<"))
    findings = list(doctor.check_transport({**os.environ, "FASTRTPS_DEFAULT_PROFILES_FILE": str(udp)}))
    assert findings[1].title == "shared memory in use" and findings[1].level in ("warn", "error"), findings


def test_opencv_has_one_thread_in_a_suite_and_its_own_number_in_what_users_run() -> None:
    suite = environment.suite_environment({"HOME": "/home/me"})
    assert suite["OPENCV_FOR_THREADS_NUM"] == "1"
    assert "OPENCV_FOR_THREADS_NUM" not in environment.without_secrets(suite)
    assert "OPENCV_FOR_THREADS_NUM" not in environment.user_environment(suite)
    mine = environment.suite_environment({"OPENCV_FOR_THREADS_NUM": "4"})
    assert environment.without_secrets(mine)["OPENCV_FOR_THREADS_NUM"] == "4"
    assert mine["OPENCV_FOR_THREADS_NUM"] == environment.user_environment(mine)["OPENCV_FOR_THREADS_NUM"] == "4"
