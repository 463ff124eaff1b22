#!/usr/bin/env python3
"""Installs the wheel into a fresh environment, and runs the scenarios of `init` by pytest: green, and red
with the bug that its README shows.

    test_wheel.py target/release/redlock-sim
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import readme_bug

HERE = Path(__file__).resolve().parent
CONFIGURATION = "[pytest]\nredlock_sim_worker = python3 lock-tests/worker.py\n"


def run(*command, cwd=None, code=0):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wheel = run(sys.executable, HERE / "build_wheel.py", sys.argv[1], "--out", place).strip()
        run(sys.executable, "-m", "venv", place / "venv")
        run(place / "venv/bin/pip", "install", "--quiet", wheel, "pytest==9.0.1")
        repository = place / "repository"
        repository.mkdir()
        run(place / "venv/bin/redlock-sim", "init", "--client", "python", cwd=repository)
        (repository / "pytest.ini").write_text(CONFIGURATION)
        pytest = [place / "venv/bin/pytest", "lock-tests"]
        output = run(*pytest, cwd=repository)
        scenarios = list((repository / "lock-tests").rglob("*.toml"))
        assert f"{len(scenarios)} passed" in output, output

        readme_bug.plant(repository / "lock-tests/worker.py")
        output = run(*pytest, cwd=repository, code=1)
        assert "scenario contention" in output and "owner-only" in output, output
    print("wheel: green, red")


if __name__ == "__main__":
    main()
