# SPDX-License-Identifier: Apache-2.0
"""Packaging for colcon (ament_python) and for pip."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "mt_nodes"
HERE = Path(__file__).parent
SHARE = Path("share") / NAME
#: Has no wheels for other processors.
_LANELET2 = 'lanelet2>=1.2.2; platform_machine == "x86_64"'
NODES = (
    *("replayer", "mutator", "monitor", "suite", "live_suite", "watch_suite"),
    *("callable_stack", "clock_echo", "simulator"),
)


def version() -> str:
    """Read the version from the package without importing it."""
    line = next(s for s in (HERE / NAME / "__init__.py").read_text().splitlines() if s.startswith("__version__"))
    return line.split('"')[1]


def tree(folder: str, pattern: str) -> list[tuple[str, list[str]]]:
    """Return the files of a folder as ``data_files``, sub-folders kept."""
    by_folder: dict[Path, list[str]] = {}
    for path in sorted((HERE / folder).rglob(pattern)):
        relative = path.relative_to(HERE)
        if path.is_file():
            by_folder.setdefault(SHARE / relative.parent, []).append(str(relative))
    return [(str(target), files) for target, files in by_folder.items()]


setup(
    name=NAME,
    version=version(),
    description="Metamorphic testing of a driving stack while it runs",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["ROS 2", "metamorphic testing", "automated driving", "LiDAR", "perception"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        *(f"Programming Language :: Python :: {version}" for version in ("3.10", "3.11", "3.12")),
        "Topic :: Scientific/Engineering",
        "Topic :: Software Development :: Testing",
        "Typing :: Typed",
    ],
    maintainer="mt_nodes maintainers",
    maintainer_email="maintainers@example.org",
    python_requires=">=3.10,<3.13",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["**/templates/*", "**/*.lark", "py.typed", "*.pyi"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (str(SHARE), ["package.xml"]),
        *tree("config", "*"),
        *tree("launch", "*.launch.py"),
    ],
    install_requires=[
        "ros-jazzy-rclpy[fastrtps]",
        "ros-jazzy-common-interfaces",
        "rosbags>=0.11",
        'open3d-cpu>=0.19; platform_machine == "x86_64"',
        'open3d>=0.19; platform_machine != "x86_64"',
        "numpy>=1.26",
        "scipy>=1.11",
        "shapely>=2.1",
        "pyyaml>=6.0",
        "jinja2>=3.1",
        "rich>=13",
        "argcomplete>=3.1",
        "matplotlib>=3.6",
        # Not `lark`: both install the same package, and ROS 2's rosidl_parser brings this one.
        "lark-parser>=0.12",
        # 4.13 is the first with tables of 16 bits (LUT); 5 has no people detector (HOGDescriptor) any more.
        "opencv-python-headless>=4.13,<5",
        "scikit-learn>=1.5",
        "cloudpickle>=3",
        "stringzilla>=5",
    ],
    extras_require={
        "awsim": ["pyzmq>=25", "protobuf>=4.25"],
        "carla": ["carla>=0.9.15"],
        # aiohttp: bags by http(s) through fsspec. backports.zstd: what workers send home is packed.
        # cryptography: the key of a cluster that other machines reach. asyncssh: clusters over SSH.
        "cluster": [
            *("distributed>=2024.8", "dask>=2024.8", "fsspec>=2024.6", "aiohttp>=3.9", "backports.zstd>=1.0"),
            *("cryptography>=42", "asyncssh>=2.17"),
        ],
        # Signed bundles of evidence (`mt evidence`); requirements in ReqIF, time stamps of RFC 3161.
        "evidence": ["cryptography>=43", "reqif>=0.1", "rfc3161-client>=1.0"],
        # Motion of the ego from the clouds of a LiDAR, where nothing publishes it.
        "motion": ["kiss-icp>=1.2"],
        "llm": ["openai>=1.50"],
        "search": ["optuna>=4"],
        # Tables over pictures, in a tenth of the time: the same bytes without it, in ROS 2 workspaces without pip.
        "speed": ["stringzilla>=5"],
        # How far readers of rules agree.
        "agreement": ["krippendorff>=0.7"],
        "vectors": ["faiss-cpu>=1.9", "openai>=1.50"],
        # Claims of scenario scripts. An extra: it pins antlr4-python3-runtime to 4.7, other packages pin it elsewhere.
        "claims": ["rtamt>=0.4.10"],
        "gherkin": ["gherkin-official>=29"],
        "openscenario": ["scenariogeneration>=0.16"],
        # High-definition maps as regions: Lanelet2 and OpenDRIVE.
        "maps": [_LANELET2, "pyxodr>=0.1.3"],
        "parquet": ["pyarrow>=14"],
        "datasets": ["pyarrow>=14"],
        # What `import mt_nodes as mt` uses where it is installed; cloudpickle, for ROS 2 workspaces without pip, too.
        "python": ["cloudpickle>=3", "pandas>=2", "ipython>=8"],
        "diffusion": ["diffusers>=0.31", "torch>=2.4", "transformers>=4.45", "accelerate>=1.0", "pillow>=10"],
        "models": ["torch>=2.4", "torchvision>=0.19", "onnx>=1.16"],
        "onnx": ["onnxruntime>=1.18"],
        # Strategies for property-based tests: `mt_nodes.api.strategies`.
        "property": ["hypothesis>=6.98"],
        "site": ["mkdocs-material>=9.5"],
        "test": [
            *("pytest>=7.4", "pytest-timeout", "pytest-xdist>=3.6", "hypothesis>=6.98"),
            *("ruff", "mypy", "types-PyYAML", "import-linter>=2.15"),
            *("pyzmq>=25", "protobuf>=4.25", "openai>=1.50", "gherkin-official>=29", "faiss-cpu>=1.9"),
            *("distributed>=2024.8", "dask>=2024.8", "fsspec>=2024.6", "aiohttp>=3.9", "backports.zstd>=1.0"),
            *("cryptography>=43", "asyncssh>=2.17", "reqif>=0.1", "rfc3161-client>=1.0"),
            *(
                "krippendorff>=0.7",
                "optuna>=4",
                "mkdocs-material>=9.5",
                "onnx>=1.16",
                "onnxruntime>=1.18",
                "jsonschema>=4.18",
                "pyarrow>=14",
                "rtamt>=0.4.10",
            ),
            *(_LANELET2, "pyxodr>=0.1.3"),
            *("kiss-icp>=1.2", "pandas>=2", "nbclient>=0.10", "nbformat>=5.10", "ipykernel>=6.29", "pyarrow>=14"),
        ],
    },
    entry_points={
        "console_scripts": [
            # `mt` is also the tape tool's name: where that comes first on the path, `mt-nodes` is the same command.
            *(f"{command} = {NAME}.cli.main:main" for command in ("mt", "mt-nodes")),
            *(f"{node} = {NAME}.nodes.{node}:main" for node in NODES),
        ],
        "pytest11": [f"{NAME} = {NAME}.api.pytest_plugin"],
    },
    zip_safe=False,
)
