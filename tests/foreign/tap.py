"""A look at what a client sends: a node's port that passes everything on, and remembers commands."""

import socket
import threading

# Commands whose first argument is part of their name.
CONTAINERS = {"client", "config", "script", "cluster", "command"}


class Tap:
    """Stands in front of the node at `port`."""

    def __init__(self, port):
        self.node = port
        self.commands = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            node = socket.create_connection(("127.0.0.1", self.node))
            for source, sink, hear in [(client, node, Requests(self.commands)), (node, client, None)]:
                threading.Thread(target=pass_on, args=(source, sink, hear), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Which wakes the thread that accepts; to close does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def pass_on(source, sink, hear):
    try:
        while data := source.recv(65536):
            if hear:
                hear.push(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        sink.close()


class Requests:
    """Arrays of bulk strings, as every client library writes them."""

    def __init__(self, commands):
        self.commands = commands
        self.bytes = b""

    def push(self, data):
        self.bytes += data
        while (request := self.next()) is not None:
            name = request[0].decode().lower()
            if name in CONTAINERS and len(request) > 1:
                name += " " + request[1].decode().lower()
            if name not in self.commands:
                self.commands.append(name)

    def next(self):
        place, words = 0, []

        def number(kind):
            nonlocal place
            end = self.bytes.find(b"\r\n", place)
            if end < 0:
                return None
            assert self.bytes[place : place + 1] == kind, self.bytes[place:end]
            line, place = self.bytes[place + 1 : end], end + 2
            return int(line)

        count = number(b"*")
        for _ in range(count or 0):
            length = number(b"$")
            if length is None or len(self.bytes) < place + length + 2:
                return None
            words.append(self.bytes[place : place + length])
            place += length + 2
        if count is None:
            return None
        self.bytes = self.bytes[place:]
        return words
