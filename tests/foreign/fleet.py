"""`redlock-sim serve` and a worker, as the runner has them."""

import json
import os
import queue
import re
import socket
import subprocess
import tempfile
import threading
import time

from child import Failure, end, spawn

# Nothing takes that long; whoever is silent for longer hangs.
PATIENCE_S = 60


def ask(port, *words, read=lambda lines: lines.readline().decode().strip()):
    """A command on a connection of its own; the first line of the answer, or what `read` makes of it."""
    request = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as node:
        node.sendall(b"*%d\r\n%s" % (len(words), request))
        return read(node.makefile("rb"))


def lines_of(answer):
    """The lines of an array of strings."""
    count = int(answer.readline()[1:])
    return [(answer.readline(), answer.readline().decode().strip())[1] for _ in range(count)]


def until(true, what):
    """Asks again and again until it is true."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        time.sleep(0.01)
        if time.monotonic() > end:
            raise Failure(f"{what} never happened")


class Fleet:
    """The masters of a scenario, on ports of their own; its time 0 is when `START` is told."""

    def __init__(self, serve, scenario, out):
        self.output = tempfile.TemporaryFile(mode="w+")
        self.process = spawn(
            [*serve, scenario, "--wait-for-start", "--base-port", "0", "--out", out],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        until(self.listens, "serve listens")
        said = self.said()
        self.ports = [int(port) for port in re.findall(r"^master .*:(\d+)$", said, re.MULTILINE)]
        self.observer = int(re.search(r"^observer .*:(\d+)$", said, re.MULTILINE)[1])

    def listens(self):
        if self.process.poll() is not None:
            raise Failure(f"serve ended: {self.said()}")
        return "\ntime 0 " in self.said()

    def said(self):
        self.output.seek(0)
        return self.output.read()

    def start(self):
        """Lets the scenario begin."""
        ask(self.observer, "START")

    def has(self, fault, stage):
        return f"{fault} {stage}" in ask(self.observer, "FAULTS", read=lines_of)

    def until(self, fault, stage):
        until(lambda: self.has(fault, stage), f"{fault} {stage}")

    def end(self):
        """Ends serving; how it ended."""
        ask(self.observer, "END")
        return self.process.wait(timeout=PATIENCE_S)

    def judge(self):
        """Ends serving; what it said, if every expectation of the scenario was met."""
        if code := self.end():
            raise Failure(f"serve ended with {code}: {self.said()}")
        return self.said()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)
        self.output.close()


class Worker:
    """A process that plays a part with a library."""

    def __init__(self, command, environment):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = spawn(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next(self):
        """The next step it takes; None if it is done."""
        try:
            line = self.lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failure("the worker hangs") from None
        if line is None:
            if code := self.process.wait(timeout=PATIENCE_S):
                raise Failure(f"the worker ended with {code}: {self.last_error()}")
            return None
        step = json.loads(line)
        if step["step"] == "failed":
            raise Failure(step["why"])
        return step

    def last_error(self):
        self.errors.seek(0)
        return (self.errors.read().strip().splitlines() or ["without a word"])[-1]

    def expect(self, name):
        step = self.next()
        if step is None or step["step"] != name:
            raise Failure(f"the worker says {step}, not `{name}`")
        return step

    def rest(self):
        return list(iter(self.next, None))

    def go_on(self):
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()
