#!/usr/bin/env python3
"""A campaign on four workers, of which one is killed and one stands still, has the bytes of one process.

    test_fleet.py target/release/redlock-sim
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CAMPAIGN = ["run", "tag:counterexample", "--seeds", "0..400"]
SHARDS = 24


def workers(of):
    """Returns the processes of Dask workers among the descendants of the process."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, queue = [], [of]
    while queue:
        for pid in children.get(queue.pop(), []):
            queue.append(pid)
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"spawn_main" in command:
                found.append(pid)
    return sorted(found)


def disturb(fleet, seen):
    """After the first shards: kills a worker, and stops another one for three seconds."""
    seen.wait()
    victim, sleeper = workers(fleet.pid)[:2]
    os.kill(victim, signal.SIGKILL)
    os.kill(sleeper, signal.SIGSTOP)
    print(f"killed {victim}, stopped {sleeper}", flush=True)
    time.sleep(3)
    os.kill(sleeper, signal.SIGCONT)


def contents(folder):
    """Returns the bytes of each file below the folder, by path."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def main():
    binary = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([binary, *CAMPAIGN, "--out", f"{place}/whole", "-q"], check=True)
        fleet = subprocess.Popen(
            [sys.executable, HERE / "fleet.py", "--shards", str(SHARDS), "--out", f"{place}/shards",
             "--report", f"{place}/merged", "--binary", binary, "--local", "4", "--ship", "--", *CAMPAIGN],
            stdout=subprocess.PIPE, text=True,
        )
        seen = threading.Event()
        threading.Thread(target=disturb, args=(fleet, seen), daemon=True).start()
        for line in fleet.stdout:
            print(line, end="", flush=True)
            if line.startswith("2/"):
                seen.set()
        assert seen.is_set() and fleet.wait() == 0, fleet.returncode
        whole = contents(f"{place}/whole")
        assert contents(f"{place}/merged") == whole
        # A shard that was lost is played again, and no other.
        Path(f"{place}/shards/shard-5-of-{SHARDS}.json.gz").unlink()
        again = subprocess.run(
            [sys.executable, HERE / "fleet.py", "--shards", str(SHARDS), "--out", f"{place}/shards",
             "--report", f"{place}/again", "--binary", binary, "--local", "1", "--", *CAMPAIGN],
            stdout=subprocess.PIPE, text=True, check=True,
        )
        assert f"{SHARDS - 1} of {SHARDS} shards are there, 1 to play" in again.stdout, again.stdout
        assert contents(f"{place}/again") == whole
    print("fleet: the bytes of one process")


if __name__ == "__main__":
    main()
