"""Makes each scenario a test: `redlock-sim drive` runs it against the project's lock client.

    [pytest]
    redlock_sim_worker = python3 lock-tests/worker.py
    redlock_sim_seeds = 0..5
"""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addini("redlock_sim_worker", "Program and arguments of a worker; without it, there are no such tests")
    parser.addini("redlock_sim_scenarios", "Folders of scenarios", type="paths", default=["lock-tests/scenarios"])
    parser.addini("redlock_sim_seeds", "Seeds, the end excluded", default="0..1")


def pytest_collect_file(file_path, parent):
    config = parent.config
    folders = [config.rootpath / folder for folder in config.getini("redlock_sim_scenarios")]
    if config.getini("redlock_sim_worker") and file_path.suffix == ".toml" and file_path.parent in folders:
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    def collect(self):
        yield Scenario.from_parent(self, name=self.path.stem)


class NotMet(Exception):
    """A scenario that is not as expected, or inconclusive; has what redlock-sim said."""


class Scenario(pytest.Item):
    def runtest(self):
        installed = Path(sysconfig.get_path("scripts")) / "redlock-sim"
        program = installed if installed.exists() else shutil.which("redlock-sim")
        value = self.config.getini
        command = [program, "drive", self.path, "--worker", value("redlock_sim_worker")]
        command += ["--seeds", value("redlock_sim_seeds"), "--out", f"reports/{self.name}"]
        done = subprocess.run(command, cwd=self.config.rootpath, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise NotMet(done.stdout.decode(errors="replace"))

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, NotMet):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"scenario {self.name}"
