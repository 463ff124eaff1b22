"""A worker of the tests of `drive`: does what its first argument names."""

import os
import socket
import sys
import time

PART, CLIENT = sys.argv[1:]
RESOURCE = os.environ["DRIVE_RESOURCE"]


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)


def ask(stream, line):
    stream.sendall(line.encode() + b"\r\n")
    reply = b""
    while not reply.endswith(b"\r\n"):
        reply += stream.recv(1)
    return reply.decode().strip()


def lock():
    for address in os.environ["DRIVE_NODES"].split(","):
        node = connect(address)
        ask(node, f"CLIENT SETNAME {CLIENT}")
        assert ask(node, f"SET {RESOURCE} {CLIENT} NX PX {os.environ['DRIVE_TTL_MS']}") == "+OK"


def tell(line):
    reply = ask(OBSERVER, line)
    assert reply == "+OK", reply


def enter():
    tell(f"ENTER {RESOURCE} {CLIENT} {CLIENT}")


def leave():
    tell(f"LEAVE {RESOURCE} {CLIENT}")


def paused():
    """Inside its section until a stop of a second is over."""
    lock()
    enter()
    before = time.monotonic()
    tell("FAULT gc")
    while True:
        now = time.monotonic()
        if now - before > 1:
            print("was stopped")
            return leave()
        before = now


def wrong_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    connect(f"127.0.0.1:{port}")


print(CLIENT, "seed", os.environ["DRIVE_SEED"], RESOURCE, os.environ["DRIVE_TTL_MS"], end=" ")
print(os.environ["DRIVE_NODES"], flush=True)
OBSERVER = connect(os.environ["DRIVE_OBSERVER"])
if PART == "paused":
    paused()
elif PART == "wrong-port":
    wrong_port()
elif PART == "enter":
    # Without a key of its own; the other worker's key makes it a run.
    if CLIENT == "c1":
        lock()
    else:
        node = connect(os.environ["DRIVE_NODES"].split(",")[0])
        while ask(node, f"EXISTS {RESOURCE}") != ":1":
            pass
    enter()
    leave()
else:
    lock()
    if PART != "lock-only":
        enter()
    if PART == "die-inside":
        tell("FAULT die")
        time.sleep(1000)
    if PART not in ("stay", "lock-only"):
        leave()
    if PART == "lock-and-sleep":
        time.sleep(1000)
