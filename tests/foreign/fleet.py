"""`redlock-sim serve` and a worker as the runner has them: processes that it starts and ends."""

import json
import os
import queue
import random
import socket
import subprocess
import tempfile
import threading
import time

# Nothing takes that long; whoever is silent for longer hangs.
PATIENCE_S = 60


class Failure(Exception):
    """What a library did is not what is expected of it."""


# Below the ports that systems hand out by themselves, so that nobody is given one in between.
PORTS = range(12_000, 32_000)


def free_ports(count):
    """The first of `count` ports in a row that nobody listens at."""
    while True:
        first = random.randrange(PORTS.start, PORTS.stop - count)
        taken = []
        try:
            for port in range(first, first + count):
                taken.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for listener in taken:
                listener.close()


def ask(port, *words, read=lambda lines: lines.readline().decode().strip()):
    """A command on a connection of its own; the first line of the answer, or what `read` makes of it."""
    request = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as node:
        node.sendall(b"*%d\r\n%s" % (len(words), request))
        return read(node.makefile("rb"))


def wall_clock_s(port):
    """What time it is at a node."""

    def seconds(lines):
        lines.readline(), lines.readline()
        return int(lines.readline())

    return ask(port, "TIME", read=seconds)


def until(true, what):
    """Asks again and again until it is true."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        time.sleep(0.01)
        if time.monotonic() > end:
            raise Failure(f"{what} never happened")


class Fleet:
    """The masters of a scenario, on ports of their own."""

    def __init__(self, serve, scenario, out):
        first = free_ports(6)
        self.ports, self.observer = list(range(first, first + 5)), first + 5
        command = [*serve, *scenario, "--base-port", str(first), "--observer-port", str(self.observer)]
        self.output = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [*command, "--out", str(out)],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        until(self.listens, "serve listens")

    def listens(self):
        if self.process.poll() is not None:
            raise Failure(f"serve ended: {self.said()}")
        try:
            for port in [*self.ports, self.observer]:
                socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False

    def said(self):
        self.output.seek(0)
        return self.output.read()

    def tell(self, word):
        answer = ask(self.observer, word)
        if not answer.startswith("+"):
            raise Failure(f"the observer answered {answer} to {word}")

    def end(self):
        """Ends serving; what it said, and how it ended."""
        self.tell("END")
        code = self.process.wait(timeout=PATIENCE_S)
        return self.said(), code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.output.close()


class Worker:
    """A process that plays a part with a library."""

    def __init__(self, command, environment):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
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
            if code := self.process.wait():
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
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()
