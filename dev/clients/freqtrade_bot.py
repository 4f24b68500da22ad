"""Has freqtrade trade live for some rounds, and compares its database with the engine's figures.

Usage: freqtrade_bot.py PROGRAM DIRECTORY, by the Python that has freqtrade.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from server import LOT, Server

PROGRAM, DIRECTORY = sys.argv[1:3]
USER, ROUNDS, WAIT_S = 7, 2, 400
STRATEGY = '''
from freqtrade.strategy import IStrategy


class Rounds(IStrategy):
    """Buys at once, and sells at once."""

    INTERFACE_VERSION = 3
    timeframe = "1m"
    startup_candle_count = 0
    process_only_new_candles = False
    minimal_roi = {"0": 10}
    stoploss = -0.9

    def populate_indicators(self, frame, metadata):
        return frame

    def populate_entry_trend(self, frame, metadata):
        frame["enter_long"] = 1
        return frame

    def populate_exit_trend(self, frame, metadata):
        return frame

    def custom_exit(self, pair, trade, current_time, current_rate, current_profit, **kwargs):
        return "at once"
'''


def configuration(server):
    """Returns a configuration: only URLs and keys are those of the server."""
    rest = server.base + "/api/v3"
    streams = server.base.replace("http", "ws", 1)
    api = {"public": rest, "private": rest, "sapi": server.base + "/sapi/v1",
           "fapiPublic": server.base + "/fapi/v1", "dapiPublic": server.base + "/dapi/v1",
           "ws": {"spot": streams + "/ws", "ws-api": {"spot": streams + "/ws-api/v3"}}}
    price = {"price_side": "other", "use_order_book": True, "order_book_top": 1}
    kind = {**dict.fromkeys(("entry", "exit", "stoploss"), "market"), "stoploss_on_exchange": False}
    return {
        "max_open_trades": 1, "stake_currency": "USDT", "stake_amount": 10, "dry_run": False,
        "trading_mode": "spot", "entry_pricing": price, "exit_pricing": price,
        "order_types": kind, "pairlists": [{"method": "StaticPairList"}],
        "exchange": {
            "name": "binance", "key": server.keys[0][0], "secret": server.keys[0][1],
            "ccxt_config": {"urls": {"api": api}}, "pair_whitelist": ["BTC/USDT"],
            "pair_blacklist": [],
        },
        "initial_state": "running", "internals": {"process_throttle_secs": 2},
    }


def main():
    """Runs the bot until it has bought and sold often enough."""
    os.makedirs(DIRECTORY + "/user/strategies")
    server = Server(PROGRAM, DIRECTORY + "/exchange")
    with open(DIRECTORY + "/config.json", "w", encoding="utf-8") as file:
        json.dump(configuration(server), file)
    with open(DIRECTORY + "/user/strategies/rounds.py", "w", encoding="utf-8") as file:
        file.write(STRATEGY)
    base = DIRECTORY + "/trades.sqlite"
    command = [os.path.dirname(sys.executable) + "/freqtrade", "trade", "--strategy", "Rounds",
               "--config", DIRECTORY + "/config.json", "--userdir", DIRECTORY + "/user",
               "--db-url", "sqlite:///" + base]
    with open(DIRECTORY + "/freqtrade.log", "w", encoding="utf-8") as log:
        bot = subprocess.Popen(command, stdout=log, stderr=log)
    closed = []
    try:
        end = time.monotonic() + WAIT_S
        while len(closed) < ROUNDS:
            assert time.monotonic() < end and bot.poll() is None, f"see {DIRECTORY}/freqtrade.log"
            time.sleep(1)
            if os.path.exists(base):
                with sqlite3.connect(base) as found:
                    try:
                        closed = found.execute("select id from trades where not is_open").fetchall()
                    except sqlite3.OperationalError:
                        # Its tables are not there yet.
                        pass
    finally:
        bot.send_signal(signal.SIGINT)
    bot.wait()
    with sqlite3.connect(base) as found:
        shown = found.execute("select side, filled from orders where filled > 0").fetchall()
    server.stop()
    engine = server.trades([USER])[USER]
    for side in ("buy", "sell"):
        own = sum(round(filled * LOT) for other, filled in shown if other == side)
        lots = sum(size for other, _, _, size in engine if other == side)
        assert own == lots > 0, (side, own, lots)
    print(f"freqtrade: {len(closed)} rounds, {len(shown)} orders filled as the engine says")


main()
