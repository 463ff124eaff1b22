#!/usr/bin/env python3
"""Runs the steps of action.yml as GitHub would, in a repository that `init` wrote: green, red with the
bug that its README shows, and green again once the bug is known.

    test_action.py target/release/redlock-sim
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import readme_bug
import yaml

ACTION = yaml.safe_load((Path(__file__).resolve().parent.parent / "action.yml").read_text())


def run(place, inputs):
    """Returns the exit code of the first step that fails, and the output."""
    values = {name: it.get("default", "") for name, it in ACTION["inputs"].items()} | inputs
    output = ""
    for step in ACTION["runs"]["steps"]:
        script = step.get("run")
        if script is None or script.startswith("cargo install"):
            continue
        environment = dict(os.environ, RUNNER_TEMP=str(place), CI="true")
        for name, value in step["env"].items():
            for known, chosen in values.items():
                value = value.replace("${{ inputs.%s }}" % known, chosen)
            assert "${{" not in value, value
            environment[name] = value
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output += done.stdout.decode()
        if done.returncode != 0:
            return done.returncode, output
    return 0, output


def main():
    binary = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "redlock-sim/bin").mkdir(parents=True)
        (place / "redlock-sim/bin/redlock-sim").symlink_to(binary)
        subprocess.run([binary, "init", "--client", "python"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        inputs = {"worker": "python3 lock-tests/worker.py", "seeds": "0..2"}
        code, output = run(place, inputs)
        assert code == 0, output

        readme_bug.plant(place / "lock-tests/worker.py")
        code, output = run(place, inputs)
        assert code == 1 and "::error" in output and "owner-only" in output, output

        bless = ["gate", "--baseline", "known.toml", "--bless", "--reason", "ticket 42"]
        outside = {name: value for name, value in os.environ.items() if name != "CI"}
        subprocess.run([binary, *bless], cwd=place, env=outside, check=True, stdout=subprocess.DEVNULL)
        code, output = run(place, inputs | {"baseline": "known.toml"})
        assert code == 0, output

        code, output = run(place, inputs | {"worker": "python3 nowhere.py"})
        assert code != 0, output
    print("action: green, red, known")


if __name__ == "__main__":
    main()
