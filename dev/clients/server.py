"""A served exchange with a gateway for the trading programs, and its own figures."""

import atexit
import json
import os
import re
import socket
import struct
import subprocess
import sys

ANY = "127.0.0.1:0"
# Assets and symbols of the demo, and a symbol with fees where nobody but the programs trades.
SYMBOLS = """[assets]
BTC = { currency = 11, decimals = 5 }
ETH = { currency = 12, decimals = 5 }
SOL = { currency = 13, decimals = 5 }
USDT = { currency = 20, decimals = 7 }
[symbols.BTCUSDT]
symbol = 1
base = "BTC"
quote = "USDT"
[symbols.ETHUSDT]
symbol = 2
base = "ETH"
quote = "USDT"
[symbols.SOLUSDT]
symbol = 3
base = "SOL"
quote = "USDT"
"""
SOL, USDT, TAKER_FEE, MAKER_FEE = 13, 20, 10, 4
LOT, UNIT = 100_000, 10_000_000
DEPOSITS = {SOL: 1_000 * LOT, USDT: 100_000 * UNIT}


class Server:
    """A process of `thalweg exchange serve --demo`."""

    def __init__(self, program, directory, *options):
        self.program, self.directory = program, directory
        options = ["--trade-listen", ANY, "--admin-listen", ANY, "--http-listen", ANY, *options]
        command = [program, "exchange", "serve", directory, "--demo", "--gateway", ANY, *options]
        with open(directory + ".log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        # It must not outlive this program.
        atexit.register(self.process.kill)
        text, last = "", "admin 1 " if "--api-keys" in options else r"(?s)secret.*secret "
        while not re.search(last, text):
            line = self.process.stdout.readline()
            if not line:
                sys.exit("the server has ended: " + directory + ".log")
            text += line
        self.base = "http://" + re.search(r"gateway ([0-9.:]+)", text).group(1)
        self.admin = re.search(r"admin ([0-9.:]+)", text).group(1)
        self.keys = re.findall(r"apiKey (\w+)\s+secret (\w+)", text)
        self.admin_key = re.search(r"admin 1 +(\w+)", text).group(1)

    @classmethod
    def with_users(cls, program, directory, users):
        """Starts one where these users have money and keys, and trade a symbol with fees."""
        os.makedirs(directory)
        symbols, keys = directory + "/names.toml", directory + "/api.toml"
        with open(symbols, "w", encoding="utf-8") as file:
            file.write(SYMBOLS)
        new = [program, "exchange", "key", "new", "--api", "hmac", "--key-file", keys]
        texts = [subprocess.check_output([*new, "--user", str(user)], text=True) for user in users]
        server = cls(program, directory, "--symbols", symbols, "--api-keys", keys)
        server.keys = [tuple(re.findall(r"\b[A-Za-z0-9]{64}\b", text)) for text in texts]
        lines = [f"symbol,3,{SOL},{USDT},1,1,{TAKER_FEE},{MAKER_FEE}"]
        for user in users:
            lines.append(f"user,{user}")
            lines += [f"deposit,{user},{asset},{sum}" for asset, sum in DEPOSITS.items()]
        key_file = directory + "/admin.key"
        with open(os.open(key_file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(server.admin_key)
        send = [program, "exchange", "send", "--admin", "1", "--connect", server.admin]
        subprocess.run([*send, "--key-file", key_file, "-q"], check=True, text=True,
                       input="\n".join(lines) + "\n", stdout=subprocess.DEVNULL)
        return server

    def stop(self):
        """Ends the server in order."""
        self.process.terminate()
        assert self.process.wait() == 0

    def accounts(self, users):
        """Asks the engine for balances by the exchange's own protocol (docs/exchange-protocol.md).

        Returns the amounts by currency of each user.
        """
        host, port = self.admin.split(":")
        with socket.create_connection((host, int(port))) as line:
            key = self.admin_key.encode()
            hello = b"TWLG" + struct.pack("<HHIIqQ", 1, 1, 3, 0, 1, 2**64 - 1) + key
            line.sendall(frame(208, 3, hello))
            for user in users:
                line.sendall(frame(219, 1, struct.pack("<Qq", user, user)))
            found = {}
            while len(found) < len(users):
                kind, what, body = read_frame(line)
                assert kind != 221, body
                if kind == 220:
                    assert what == 1, f"no account: {what}"
                    query, _next, _user, _last, _open, count = struct.unpack_from("<QQqqQI", body)
                    amounts = struct.iter_unpack("<iq", body[52:52 + 12 * count])
                    found[query] = dict(amounts)
            return found

    def trades(self, users):
        """Reads the trades of users from what the engine has kept, once it has ended."""
        export = [self.program, "exchange", "export", "-q", self.directory + "/exchange"]
        found = {user: [] for user in users}
        with subprocess.Popen(export, stdout=subprocess.PIPE, text=True) as lines:
            for line in lines.stdout:
                row = json.loads(line)
                if row.get("record") == "trade" and row["user"] in found:
                    found[row["user"]].append(
                        (row["side"], row["role"], row["price"], row["size"]))
        return found


def frame(kind, what, body):
    """Returns a frame of the exchange's protocol."""
    return struct.pack("<IBBBB", 8 + len(body), kind, 1, what, 0) + body


def read_frame(line):
    """Reads a frame. Returns its kind, its own byte and its fields."""
    def exactly(count):
        data = b""
        while len(data) < count:
            part = line.recv(count - len(data))
            assert part, "the connection has ended"
            data += part
        return data
    length, kind, _version, what, _b = struct.unpack("<IBBBB", exactly(8))
    return kind, what, exactly(length - 8)
