"""Records what the trading programs send, and the structure of what they get, for the test
`recorded` of thalweg-gateway, whose file is tests/websocket/recorded.jsonl.

Usage: record.py PROGRAM DIRECTORY MODULES FILE

MODULES is where `cargo dev clients` has put the programs in JavaScript: target/clients. Keys, times
and signatures are left out, as `{key}`, `{timestamp}` and `{signature}`: the test puts its own.
"""

import json
import re
import socket
import struct
import sys
import threading
import time

import programs

# Those of a connection, which the test makes anew.
OWN_HEADERS = ("host", "content-length", "connection", "accept-encoding")
LOCK = threading.Lock()
ENTRIES, CONNECTIONS = [], []


def shape(value):
    """Returns a value with its names and types; a list has its first item.

    Kinds of events and statuses of responses have their values.
    """
    if isinstance(value, dict):
        return {name: item if name == "e" or (name, item) == ("status", 200) else shape(item)
                for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return None if value is None else type(value)()


def orders(value):
    """Returns the ids of orders in a value, in their order."""
    if isinstance(value, list):
        return [order for item in value for order in orders(item)]
    if not isinstance(value, dict):
        return []
    own = [value["orderId"]] if "orderId" in value else []
    return own + [order for item in value.values() for order in orders(item)]


def without_own(text, key):
    """Returns a request without its key, time and signature."""
    text = text.replace(key, "{key}")
    text = re.sub(r'(timestamp(?:=|":\s*"?))\d+', r"\1{timestamp}", text)
    return re.sub(r'(signature(?:=|":\s*"))[0-9a-f]+', r"\1{signature}", text)


class Line:
    """One side of a connection, whose bytes go on to the other one as they come."""

    def __init__(self, source, sink):
        self.source, self.sink, self.waiting = source, sink, b""

    def more(self):
        """Reads on, and passes it on; ends the thread where the connection ends."""
        data = b""
        try:
            data = self.source.recv(65536)
            self.sink.sendall(data)
        except OSError:
            pass
        if not data:
            for end in (self.source, self.sink):
                end.close()
            sys.exit()
        self.waiting += data

    def take(self, count):
        """Takes so many bytes."""
        while len(self.waiting) < count:
            self.more()
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def message(self):
        """Takes a message of HTTP. Returns its first line, its headers and its body."""
        while b"\r\n\r\n" not in self.waiting:
            self.more()
        head = self.take(self.waiting.index(b"\r\n\r\n") + 4).decode().split("\r\n")
        headers = [line for line in head[1:] if line]
        lengths = [line for line in headers if line.lower().startswith("content-length:")]
        body = self.take(int(lengths[0].split(":")[1]) if lengths else 0)
        return head[0], headers, body.decode()

    def text(self):
        """Takes frames of a WebSocket up to a text."""
        while True:
            first, second = self.take(2)
            length = second & 127
            if length > 125:
                size = "!H" if length == 126 else "!Q"
                length = struct.unpack(size, self.take(struct.calcsize(size)))[0]
            mask = self.take(4) if second & 128 else bytes(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.take(length)))
            if first & 15 == 1:
                return data.decode()


def receive(line, connection):
    """Notes the structure of responses and events."""
    while True:
        message = json.loads(line.text())
        request = json.dumps(message.get("id"))
        while "id" in message and request not in connection["asked"]:
            # The request was passed on, and is noted soon.
            time.sleep(0.01)
        with LOCK:
            if "id" in message:
                asked = connection["asked"].pop(request)
                asked |= {"answer": shape(message), "orders": orders(message)}
            else:
                event = message.get("event", message)
                if event.get("e") != "serverShutdown":
                    connection["events"].setdefault(event.get("e"), shape(message))


def serve(client, address, program, key):
    """Records a connection."""
    server = socket.create_connection(address)
    up, down = Line(client, server), Line(server, client)
    while True:
        first, headers, body = up.message()
        method, path, _ = first.split(" ")
        status, _, answer = down.message()
        if " 101 " in status:
            break
        kept = [without_own(line, key) for line in headers
                if line.split(":")[0].lower() not in OWN_HEADERS]
        answer = json.loads(answer)
        entry = {"program": program, "method": method, "path": without_own(path, key),
                 "headers": kept, "body": without_own(body, key)}
        with LOCK:
            if method != "GET" or all({**old, **entry} != old for old in ENTRIES):
                ENTRIES.append({**entry, "status": int(status.split(" ")[1]),
                                "answer": shape(answer), "orders": orders(answer)})
    with LOCK:
        connection = {"asked": {}, "events": {}}
        CONNECTIONS.append(connection)
        number = len(CONNECTIONS) - 1
        ENTRIES.append({"program": program, "connection": number, "open": path})
    threading.Thread(target=receive, args=(down, connection), daemon=True).start()
    while True:
        text = up.text()
        with LOCK:
            entry = {"program": program, "connection": number, "send": without_own(text, key)}
            connection["asked"][json.dumps(json.loads(text).get("id"))] = entry
            ENTRIES.append(entry)


def through(base, program, key):
    """Returns the address of a proxy that records."""
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = base.removeprefix("http://").split(":")

    def accept():
        while True:
            client, _ = listener.accept()
            args = (client, (host, int(port)), program, key)
            threading.Thread(target=serve, args=args, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "http://127.0.0.1:%d" % listener.getsockname()[1]


def main():
    """Has the programs trade, and writes what they sent, one entry a line."""
    program, directory, modules = sys.argv[1:4]
    print(programs.together(program, directory, programs.commands(modules), through))
    for number, connection in enumerate(CONNECTIONS):
        ENTRIES.append({"connection": number, "events": list(connection["events"].values())})
    with open(sys.argv[4], "w", encoding="utf-8") as file:
        for entry in ENTRIES:
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")


main()
