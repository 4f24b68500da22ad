"""Has trading programs trade with one another, each in its own process, and compares all that they
saw with the engine's own figures.
"""

import atexit
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

from server import DEPOSITS, LOT, MAKER_FEE, SOL, TAKER_FEE, UNIT, USDT, Server

HERE = sys.path[0]
PYTHON = {
    "ccxt in Python": "ccxt_python.py",
    "python-binance": "python_binance.py",
    "binance-sdk-spot": "binance_sdk.py",
}
JAVASCRIPT = {"ccxt in JavaScript": "ccxt_js.mjs", "@binance/spot": "binance_spot.mjs"}
# The first user who trades; the next ones follow.
USER_FIRST = 21
PRICE, SIZE, SMALLER = 100.5, 0.003, 0.002


class Program:
    """A process with a library, which does what it is asked."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)

    def __call__(self, what, **request):
        """Asks for something. Returns the answer."""
        self.process.stdin.write(json.dumps({"do": what, **request}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        raise AssertionError(f"{self.name} has ended at {what} {request}")

    def end(self):
        """Ends the process."""
        self.process.stdin.close()
        assert self.process.wait() == 0, self.name


def commands(modules):
    """Returns the name and the command of each library: those in JavaScript where their modules
    are."""
    scripts = [(name, [sys.executable, f"{HERE}/{file}"]) for name, file in PYTHON.items()]
    if modules:
        scripts += [(name, ["node", f"{modules}/{file}"]) for name, file in JAVASCRIPT.items()]
    return scripts


def trade(one, other):
    """Has one program place, amend and cancel, and another one trade with it.

    Returns the orders of the first.
    """
    order = one("place", side="sell", price=PRICE, quantity=SIZE)
    sold = one("amend", order=order, side="sell", price=PRICE, quantity=SMALLER)
    assert other("take", side="buy", quantity=SMALLER) == SMALLER
    bought = one("place", side="buy", price=PRICE - 1, quantity=SIZE)
    # A part of it is filled, and what is left is cancelled.
    assert other("take", side="sell", quantity=SMALLER) == SMALLER
    status = one("cancel", order=bought)
    assert status.lower() == "canceled", status
    return {str(order), str(sold), str(bought)}


def followed(program, orders):
    """Checks that the program was shown its own orders, filled and cancelled: events may come later
    than answers.
    """
    for _ in range(1_000):
        seen = [(str(order), status.lower(), float(filled))
                for order, status, filled in program("events")]
        ends = {(status, filled) for order, status, filled in seen
                if order in orders and status in ("filled", "closed", "canceled")}
        if (orders <= {order for order, _, _ in seen} and ("canceled", SMALLER) in ends
                and ends & {("filled", SMALLER), ("closed", SMALLER)}):
            return
        time.sleep(0.1)
    raise AssertionError(f"{program.name} has seen {seen} of {orders}")


def exact(number):
    """Returns the decimal that a program shows."""
    return Decimal(str(number))


def totals(trades):
    """Returns a user's trades as the engine counts them, and their fees."""
    rows, fees = [], Decimal(0)
    for _id, _order, side, role, price, quantity, fee in trades:
        rows.append((side, role, int(exact(price) * 100), int(exact(quantity) * LOT)))
        fees += exact(fee)
    return sorted(rows), int(fees * UNIT)


def compare(users, seen, accounts, engine):
    """Compares each user's trades, fees and balances with the engine's. Returns their totals."""
    count = total_fees = 0
    for user in users:
        (rows, fees), balances = totals(seen[user][0]), seen[user][1]
        assert rows == sorted(engine[user]), (user, rows, engine[user])
        own = sum(size * (TAKER_FEE if role == "taker" else MAKER_FEE)
                  for _, role, _, size in engine[user])
        assert fees == own, (user, fees, own)
        sold = {side: [(price, size) for s, _, price, size in engine[user] if s == side]
                for side in ("buy", "sell")}
        lots = {side: sum(size for _, size in of) for side, of in sold.items()}
        paid = {side: sum(price * size for price, size in of) for side, of in sold.items()}
        expected = {SOL: DEPOSITS[SOL] + lots["buy"] - lots["sell"],
                    USDT: DEPOSITS[USDT] - paid["buy"] + paid["sell"] - fees}
        shown = {SOL: exact(balances["SOL"]) * LOT, USDT: exact(balances["USDT"]) * UNIT}
        assert accounts[user] == expected == shown, (user, accounts[user], expected, shown)
        count, total_fees = count + len(rows), total_fees + fees
    return count, total_fees


def together(program, directory, scripts, through=None):
    """Starts a server and some programs, and has them trade. Returns their books that equal REST's,
    their trades and fees.

    `through` makes of the server's address that which each program gets.
    """
    users = range(USER_FIRST, USER_FIRST + len(scripts))
    server = Server.with_users(program, directory, users)
    bases = [through(server.base, index, key[0]) if through else server.base
             for index, key in enumerate(server.keys)]
    programs = [Program(name, [*command, base, *key])
                for (name, command), base, key in zip(scripts, bases, server.keys)]
    with ThreadPoolExecutor(len(programs)) as pool:
        def all_at_once(what):
            return list(pool.map(lambda one: one(what), programs))
        assert all(money == DEPOSITS[USDT] / UNIT for money in all_at_once("start"))
        assert all(min(read) > 0 for read in all_at_once("market")), "the market is empty"
        equal = all_at_once("book")
    for one, count in zip(programs, equal):
        assert count > 0, f"{one.name} had no snapshot in common with REST"
    orders = [trade(one, other) for one, other in zip(programs, programs[1:] + programs[:1])]
    seen = {user: (one("trades"), one("balances")) for user, one in zip(users, programs)}
    for one, own in zip(programs, orders):
        followed(one, own)
    for one in programs:
        one.end()
    accounts = server.accounts(users)
    server.stop()
    return (sum(equal), *compare(users, seen, accounts, server.trades(users)))


def run(program, directory, modules):
    """Has each program trade with the next one, against a fresh server of their own. Returns what
    they did, in words."""
    scripts = commands(modules)
    pairs = list(zip(scripts, scripts[1:] + scripts[:1]))
    with ThreadPoolExecutor(len(pairs)) as pool:
        done = list(pool.map(
            lambda at: together(program, f"{directory}/{at}", pairs[at]), range(len(pairs))))
    equal, count, fees = (sum(of) for of in zip(*done))
    names = ", ".join(name for name, _ in scripts)
    return (f"{names}, each with a fresh server: {equal} books equal REST's; {count} trades, "
            f"{Decimal(fees) / UNIT} USDT of fees and all balances equal the engine's")
