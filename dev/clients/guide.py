"""Follows the guide of docs/gateway.md word for word: its commands, then its program, in which only
the key and its secret are filled in, and free ports where others may have those of the guide.

Usage: guide.py PROGRAM DIRECTORY PAGE
"""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

PROGRAM, DIRECTORY, PAGE = sys.argv[1:4]
# Its ports are those that everybody has: so it gets a network of its own, where that can be had, and
# any free ports elsewhere.
ANY = "127.0.0.1:0"
LISTEN = f"--gateway {ANY} --trade-listen {ANY} --admin-listen {ANY} --http-listen {ANY}"
ALONE = ["unshare", "--map-root-user", "--net"]
LOOPBACK = """import fcntl, os, socket, struct, sys
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sh", b"lo", 1))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def blocks():
    """Returns the commands and the program of the guide."""
    with open(PAGE, encoding="utf-8") as page:
        section = re.search(r"\n## Your ccxt bot .*?(?=\n## )", page.read(), re.S).group()
    commands, = re.findall(r"```sh\n(.*?)```", section, re.S)
    program, = re.findall(r"```python\n(.*?)```", section, re.S)
    assert program.count("…") == 2
    return commands, program


def has_orders(base):
    """Returns whether the demo's book has what the program shows and takes."""
    with urllib.request.urlopen(base + "/api/v3/depth?symbol=BTCUSDT") as answer:
        book = json.load(answer)
    return len(book["bids"]) >= 3 and len(book["asks"]) >= 3


def follow():
    """Starts the exchange, and trades with it."""
    commands, program = blocks()
    base, = re.findall(r'base = "(.*)"', program)
    is_alone = sys.argv[4:] == ["alone"]
    if not is_alone:
        assert commands.count("--gateway") == 1, commands
        commands = commands.replace("--gateway", LISTEN)
    path = os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]
    environment = {**os.environ, "PATH": path, "TMPDIR": DIRECTORY}
    with open(DIRECTORY + "/guide.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(["sh", "-e", "-c", commands], env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=log, start_new_session=True)
    try:
        text = ""
        while not re.search(r"(?s)secret.*secret ", text):
            line = server.stdout.readline()
            assert line, f"the server has ended: {DIRECTORY}/guide.log"
            text += line
        for filled in re.search(r"apiKey (\w+)\s+secret (\w+)", text).groups():
            program = program.replace("…", filled, 1)
        if not is_alone:
            listens = "http://" + re.search(r"gateway ([0-9.:]+)", text).group(1)
            base, program = listens, program.replace(base, listens)
        # A reader takes longer.
        while not has_orders(base):
            time.sleep(0.05)
        shown = subprocess.check_output([sys.executable, "-c", program], text=True).splitlines()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
    bids, cancelled, filled = shown
    assert len(ast.literal_eval(bids)) == 3, shown
    assert (cancelled, filled) == ("canceled", "closed"), shown
    print(f"the guide of {os.path.basename(PAGE)} shows {shown}")


if len(sys.argv) == 4 and subprocess.call([*ALONE, "true"], stderr=subprocess.DEVNULL) == 0:
    again = [sys.executable, *sys.argv, "alone"]
    os.execvp(ALONE[0], [*ALONE, sys.executable, "-c", LOOPBACK, *again])
follow()
