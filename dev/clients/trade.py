"""Has trading programs trade against fresh servers, and compares what they see with the engine's
figures; then kills the server while ccxt trades.

Usage: trade.py PROGRAM DIRECTORY KILLS [MODULES]

MODULES is where the programs in JavaScript are, beside their modules.
"""

import random
import sys
import threading
import time

import ccxt
from binance.client import BaseClient, Client

import programs
from server import Server

PROGRAM, DIRECTORY = sys.argv[1:3]
SYMBOL, PAIR = "BTCUSDT", "BTC/USDT"


def ccxt_client(base, key):
    """Returns a client of ccxt: only URLs and keys are its own."""
    api = {"public": "/api/v3", "private": "/api/v3", "sapi": "/sapi/v1"}
    client = ccxt.binance({
        "apiKey": key[0],
        "secret": key[1],
        "enableRateLimit": False,
        "options": {"fetchMarkets": {"types": ["spot"]}},
        "urls": {"api": {name: base + path for name, path in api.items()}},
    })
    client.load_markets()
    return client


def binance_client(base, key):
    """Returns a client of python-binance."""
    BaseClient.API_URL = base + "/api"
    BaseClient.MARGIN_API_URL = base + "/sapi"
    return Client(*key)


def refused(error, call):
    """Checks that a call is refused with an error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def await_market(one):
    """Waits until the demo has orders on both sides, trades and candles."""
    while True:
        book = one.fetch_order_book(PAIR)
        if book["bids"] and book["asks"] and one.fetch_trades(PAIR) and one.fetch_ohlcv(PAIR, "1m"):
            return
        time.sleep(0.05)


def trade(one, other):
    """Places, follows, replaces and cancels orders, and is refused."""
    order = one.create_order(PAIR, "limit", "buy", 0.001, 50)
    assert order["status"] == "open" and one.fetch_balance()["USDT"]["used"] == 0.05
    assert [o["id"] for o in one.fetch_open_orders(PAIR)] == [order["id"]]
    order = one.edit_order(order["id"], PAIR, "limit", "buy", 0.002, 51)
    assert one.cancel_order(order["id"], PAIR)["status"] == "canceled"
    assert one.create_order(PAIR, "market", "buy", 0.001)["status"] == "closed"
    assert one.create_market_buy_order_with_cost(PAIR, 0.05)["filled"] > 0
    assert one.create_order(PAIR, "market", "sell", 0.001)["filled"] == 0.001
    stop = {"stopPrice": 500}
    stop = one.create_order(PAIR, "limit", "buy", 0.001, 501, stop)
    assert [o["id"] for o in one.cancel_all_orders(PAIR)] == [stop["id"]]
    limit = (PAIR, "limit", "buy")
    refused(ccxt.OrderImmediatelyFillable,
            lambda: one.create_order(*limit, 0.001, 150, {"postOnly": True}))
    refused(ccxt.InsufficientFunds, lambda: one.create_order(*limit, 1e7, 99))
    refused(ccxt.OrderNotFound, lambda: one.cancel_order("999999", PAIR))
    own = other.order_limit_sell(symbol=SYMBOL, quantity="0.001", price="400.00")
    assert other.get_order(symbol=SYMBOL, orderId=own["orderId"])["status"] == "NEW"
    assert other.cancel_order(symbol=SYMBOL, orderId=own["orderId"])["status"] == "CANCELED"
    assert other.order_market_buy(symbol=SYMBOL, quantity="0.001")["status"] == "FILLED"
    assert len(other.get_my_trades(symbol=SYMBOL)) > 0


def fills(client):
    """Returns a user's trades by id, which are those of its orders together."""
    try:
        # Else one may trade between the two questions.
        client.cancel_all_orders(PAIR)
    except ccxt.OrderNotFound:
        pass
    trades = client.fetch_my_trades(PAIR, None, 1_000)
    by_id = {t["id"]: (t["order"], t["amount"], t["price"], t["timestamp"]) for t in trades}
    assert len(by_id) == len(trades)
    orders = client.fetch_orders(PAIR, None, 1_000)
    names = [order["clientOrderId"] for order in orders]
    assert len(set(names)) == len(names), "an order is there twice"
    # Either list has the last 1,000 at most: those orders count that both reach back to.
    first = max(
        min((int(order["id"]) for order in orders), default=0),
        min((int(t["order"]) for t in trades), default=0) + 1 if len(trades) == 1_000 else 0,
    )
    filled = sum(order["filled"] for order in orders if int(order["id"]) >= first)
    traded = sum(trade["amount"] for trade in trades if int(trade["order"]) >= first)
    assert abs(filled - traded) < 1e-9, (filled, traded)
    return by_id


def place_until_killed(server, client, round_number):
    """Places orders until the server is killed. Returns those that were answered, and the last."""
    answered = {}
    threading.Timer(random.uniform(0.01, 0.15), server.kill).start()
    for number in range(10_000):
        name = f"kill-{round_number}-{number}"
        try:
            price = 90 if number % 2 else 101
            client_id = {"newClientOrderId": name}
            order = client.create_order(PAIR, "limit", "buy", 0.0001, price, client_id)
            answered[name] = (order["id"], order["filled"])
        except (ccxt.NetworkError, ccxt.ExchangeError):
            return answered, name
    sys.exit("the server lives on")


def main():
    """Trades; then kills the server while orders come, and looks for them after its start: what was
    answered is there, and what was not and is not there is placed again with the same name.
    """
    kills, modules = int(sys.argv[3]), (sys.argv + [None])[4]
    print(programs.run(PROGRAM, DIRECTORY + "/programs", modules), flush=True)
    server = Server(PROGRAM, DIRECTORY + "/kills")
    one = ccxt_client(server.base, server.keys[0])
    await_market(one)
    trade(one, binance_client(server.base, server.keys[1]))
    before, executed = fills(one), 0
    for round_number in range(kills):
        answered, last = place_until_killed(server.process, one, round_number)
        server.process.wait()
        server = Server(PROGRAM, DIRECTORY + "/kills")
        one = ccxt_client(server.base, server.keys[0])
        for name, (order_id, filled) in answered.items():
            found = one.fetch_order(None, PAIR, {"origClientOrderId": name})
            assert found["id"] == order_id and found["filled"] >= filled, name
        try:
            one.fetch_order(None, PAIR, {"origClientOrderId": last})
            executed += 1
        except ccxt.OrderNotFound:
            one.create_order(PAIR, "limit", "buy", 0.0001, 90, {"newClientOrderId": last})
        after = fills(one)
        assert all(after.get(key) == value for key, value in before.items()), "trades changed"
        before = after
    server.stop()
    print(f"ccxt in Python: {len(before)} trades, nothing lost or doubled in {kills} kills; "
          f"{executed} of the orders without an answer were executed, the others placed again")


main()
