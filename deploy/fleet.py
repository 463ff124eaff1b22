#!/usr/bin/env python3
"""Plays a campaign of redlock-sim on a Dask cluster, and merges it.

    fleet.py --shards 64 --out campaign --local 4 -- run scenarios/ --seeds 0..100000
    fleet.py --shards 4096 --out s3://bucket/campaign --scheduler tcp://head:8786 --ship -- \
        explore --plans 1000000000 --seed 7

Each shard is a task: a worker runs `redlock-sim ... --shard K/N` on one core and returns the shard's
file, which is stored in the directory `--out` as soon as it comes. What is stored there is not played
again, so a campaign that was interrupted goes on; another campaign needs another directory. Dask gives
the shards of dead workers to others.
At the end, `redlock-sim merge` reports all shards as one process would have.

Needs `pip install distributed`; for an object store also the package that fsspec names for it.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import dask
import fsspec
from distributed import Client, LocalCluster, as_completed, get_worker
from fsspec.implementations.local import LocalFileSystem

# Tasks here are processes that run for seconds to hours. What Dask does every few milliseconds for tasks that
# are short, or its own threads, takes a third of a core with four workers on one machine.
QUIET = {
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "5s",
    "distributed.worker.profile.enabled": False,
}

# Attempts at a shard whose command fails. A shard whose worker dies counts for Dask's own limit.
RETRIES = 3


def name(number, shards):
    return f"shard-{number}-of-{shards}.json.gz"


def program(binary, shipped):
    """Returns the path of the command on this worker; `shipped` has its bytes if it was sent along."""
    if shipped is None:
        return binary
    path = Path(get_worker().local_directory) / "redlock-sim"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(shipped)
        part.chmod(0o755)
        part.rename(path)
    return str(path)


def environment():
    """Returns the command's environment: one core, and memory managed as in any other process, not as
    Dask asks of its workers."""
    inherited = {name: value for name, value in os.environ.items() if name != "MALLOC_TRIM_THRESHOLD_"}
    return {**inherited, "RAYON_NUM_THREADS": "1"}


def play(binary, shipped, arguments, number, shards):
    """Plays one shard on one core, and returns its file."""
    with tempfile.TemporaryDirectory() as out:
        command = [program(binary, shipped), *arguments, "--shard", f"{number}/{shards}", "--out", out]
        done = subprocess.run(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace").strip()[-2000:]
            raise RuntimeError(f"exit code {done.returncode}: {said}")
        return (Path(out) / name(number, shards)).read_bytes()


def gather(client, options, shipped, files, out):
    """Plays the shards that `out` does not have. Returns the number of those that failed."""
    stored = {Path(path).name for path in files.ls(out, detail=False)}
    left = [number for number in range(1, options.shards + 1) if name(number, options.shards) not in stored]
    print(f"{options.shards - len(left)} of {options.shards} shards are there, {len(left)} to play", flush=True)
    tasks = {
        client.submit(
            play, options.binary, shipped, options.arguments, number, options.shards,
            retries=RETRIES, pure=False,
        ): number
        for number in left
    }
    failed = 0
    for done, task in enumerate(as_completed(tasks), start=1):
        number = tasks[task]
        if task.status == "finished":
            # Written under another name first: a file with the name of a shard is whole.
            path = f"{out}/{name(number, options.shards)}"
            files.pipe_file(path + ".part", task.result())
            files.mv(path + ".part", path)
        else:
            failed += 1
            print(f"shard {number} failed: {task.exception()}", flush=True)
        task.release()
        print(f"{done}/{len(left)} shards played, {failed} failed", flush=True)
    return failed


def merge(options, files, out):
    """Reports the shards in `out` as one campaign. Returns the exit code."""
    with tempfile.TemporaryDirectory() as near:
        place = out
        if not isinstance(files, LocalFileSystem):
            files.get(f"{out}/shard-*.json.gz", near + "/")
            place = near
        code = subprocess.run([options.binary, "merge", "--quiet", place, "--out", options.report]).returncode
    print(f"merged: {options.report}, exit code {code}", flush=True)
    return code


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, required=True, help="number of parts; several for each core")
    parser.add_argument("--out", required=True, help="directory or object store (s3://, gs://, …) for the shards")
    parser.add_argument("--report", default="reports", help="directory of the merged reports")
    parser.add_argument("--binary", default="redlock-sim", help="the command, here and (without --ship) on workers")
    parser.add_argument("--ship", action="store_true", help="send the command to the workers, which are of this kind")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--local", type=int, metavar="N", help="start N workers on this machine")
    where.add_argument("--scheduler", metavar="ADDRESS", help="use a running cluster")
    parser.add_argument("arguments", nargs="+", metavar="-- run|explore …", help="the command without --shard and --out")
    options = parser.parse_args(arguments)
    if options.arguments[0] not in ("run", "explore"):
        parser.error("only `run` and `explore` are campaigns of many equal runs: `drive` needs its workers' machine")
    if options.shards < 1:
        parser.error("--shards: at least 1")
    return options


def main():
    options = parsed(sys.argv[1:])
    files, out = fsspec.core.url_to_fs(options.out)
    files.makedirs(out, exist_ok=True)
    with contextlib.ExitStack() as stack:
        cluster = options.scheduler
        if options.local:
            dask.config.set(QUIET)
            local = LocalCluster(n_workers=options.local, threads_per_worker=1, dashboard_address=None)
            cluster = stack.enter_context(local)
        client = stack.enter_context(Client(cluster))
        shipped = None
        if options.ship:
            shipped = client.scatter(Path(shutil.which(options.binary)).read_bytes(), broadcast=True)
        failed = gather(client, options, shipped, files, out)
    code = merge(options, files, out)
    # As `merge` itself says of shards that are missing.
    return code or (3 if failed else 0)


if __name__ == "__main__":
    sys.exit(main())
