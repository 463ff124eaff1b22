"""A library under test, and how it gets into target/foreign/, unmodified."""

import dataclasses
import hashlib
import importlib.util
import pathlib
import shlex
import shutil
import subprocess
import sys

from child import Failure, end, spawn

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "foreign"

# To fetch and to build what a manifest names.
INSTALL_S = 600


class Missing(Exception):
    """What a library is run by is not on this machine."""


@dataclasses.dataclass
class Library:
    """What expected.json says of it."""

    name: str
    language: str
    speaks_by: str
    extends: bool
    late: str
    reply_timeout: str
    version: str = ""
    # Its name where that of its folder is another.
    package: str = ""
    # How many nodes it knows.
    nodes: int = 5
    # What it puts before the resource's name.
    prefix: str = ""
    # What it does with late replies if its own reply timeout is out of their way.
    late_if_patient: str = ""
    # Why the clash is nothing for it.
    no_clash: str = ""

    def __post_init__(self):
        self.title = f"{self.package or self.name} {self.version}".strip()
        self.folder, self.home = HERE / self.name, TARGET / self.name
        self.command, self.environment = [], {}

    def install(self):
        """Makes `command` and `environment` what its worker is run by."""
        {"Python": self.python, "node": self.node, "Rust": self.rust, "PHP": self.php}[self.language]()

    def python(self):
        # Debian's python3 has it in a package of its own.
        if not importlib.util.find_spec("ensurepip"):
            raise Missing("python3-venv")
        python = self.home / "bin" / "python"
        requirements = self.folder / "requirements.txt"
        if self.begin([requirements], sys.version):
            self.do(sys.executable, "-m", "venv", self.home)
            self.do(python, "-m", "pip", "install", "-q", "--no-deps", "-r", requirements)
            self.stamp.write_text(self.wanted)
        self.command = [python, self.folder / "worker.py"]
        self.environment = {"PYTHONPATH": str(HERE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}

    def node(self):
        need("node"), need("npm")
        manifest = [self.folder / "package.json", self.folder / "package-lock.json"]
        if self.begin(manifest):
            for file in manifest:
                shutil.copy(file, self.home)
            self.do("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
            self.stamp.write_text(self.wanted)
        self.command = ["node", self.folder / "worker.cjs"]
        self.environment = {"NODE_PATH": str(self.home / "node_modules")}

    def rust(self):
        need("cargo")
        # A world of its own, whose versions are those of the project's lock file.
        world = shutil.copytree(self.folder, self.home / "world", dirs_exist_ok=True)
        shutil.copy2(HERE.parent.parent / "Cargo.lock", world)
        manifest = world / "Cargo.toml"
        self.do("cargo", "build", "-q", "--manifest-path", manifest, "--target-dir", self.home)
        self.command = [self.home / "debug" / f"{self.name}-worker"]

    def php(self):
        need("php")
        if subprocess.run(["php", "-r", 'exit(extension_loaded("redis") ? 0 : 1);']).returncode:
            raise Missing("php-redis")
        self.command = ["php", self.folder / "worker.php"]

    def begin(self, manifest, version=""):
        """Whether what is in `home` is not what the manifest says; then it is emptied."""
        said = b"".join(file.read_bytes() for file in manifest) + version.encode()
        self.stamp, self.wanted = self.home / "stamp", hashlib.sha256(said).hexdigest()
        if self.stamp.exists() and self.stamp.read_text() == self.wanted:
            return False
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        return True

    def do(self, *command):
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = spawn(command, cwd=self.home, text=True, **how)
        try:
            said, _ = process.communicate(timeout=INSTALL_S)
        finally:
            end(process)
        if process.returncode:
            raise Failure(f"`{shlex.join(map(str, command))}` failed: {said.strip()[-500:]}")


def need(program):
    if not shutil.which(program):
        raise Missing(program)
