# A shop whose answers are slow: docs/diagnosing.md attaches the doctor to it.
#
#     shop.py serve one|each       answer orders, with one connection to the database or one each
#     shop.py load COUNT           eight clients that send so many orders
#     shop.py both one|each COUNT  serve a load, then end: a command for `thalweg doctor compare`
import contextlib
import os
import signal
import socket
import sys
import threading
import time

ADDRESS = ("127.0.0.1", 18480)
CLIENTS = 8


def answer(client, connection):
    with client:
        while client.recv(64):
            with connection:
                time.sleep(0.005)  # what the database takes for a query
            client.sendall(b"sold")


def serve(listener, kind):
    one = threading.Lock()
    while True:
        connection = one if kind == "one" else contextlib.nullcontext()
        client = (listener.accept()[0], connection)
        threading.Thread(target=answer, args=client, daemon=True).start()


def order(count):
    with socket.create_connection(ADDRESS) as shop:
        for _ in range(count):
            shop.sendall(b"buy")
            shop.recv(64)


def load(count):
    start = time.monotonic()
    clients = [threading.Thread(target=order, args=(count // CLIENTS,)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    print(f"{count / (time.monotonic() - start):.0f} orders a second")


def listen():
    return socket.create_server(ADDRESS, backlog=CLIENTS)


def both(kind, count):
    listener = listen()
    server = os.fork()
    if server == 0:
        serve(listener, kind)
    load(count)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)


match sys.argv[1:]:
    case ["serve", kind]:
        serve(listen(), kind)
    case ["load", count]:
        load(int(count))
    case ["both", kind, count]:
        both(kind, int(count))
    case _:
        sys.exit("usage: shop.py serve one|each, load COUNT, both one|each COUNT")
