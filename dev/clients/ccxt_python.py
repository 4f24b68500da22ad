"""ccxt in Python, with its streams."""

import asyncio

import ccxt.pro

from adapter import BASE, BOOK, KEY, LEVELS, SECRET, TRADED, WS, Books, for_five_seconds, serve

PAIR = {BOOK: "BTC/USDT", TRADED: "SOL/USDT"}


class Client:
    """Only URLs and keys are its own."""

    async def start(self):
        """Logs in and follows the own orders."""
        rest = {"public": "/api/v3", "private": "/api/v3", "sapi": "/sapi/v1"}
        streams = {"spot": WS + "/ws", "ws-api": {"spot": WS + "/ws-api/v3"}}
        self.exchange = ccxt.pro.binance({
            "apiKey": KEY,
            "secret": SECRET,
            "enableRateLimit": False,
            "options": {"fetchMarkets": {"types": ["spot"]}},
            "urls": {"api": {**{name: BASE + path for name, path in rest.items()}, "ws": streams}},
        })
        self.seen = []
        await self.exchange.load_markets()
        self.own = asyncio.create_task(self.follow())
        return (await self.exchange.fetch_balance())["USDT"]["total"]

    async def follow(self):
        """Keeps what happens to the own orders."""
        while True:
            for order in await self.exchange.watch_orders(PAIR[TRADED]):
                self.seen.append([order["id"], order["status"], order["filled"]])

    async def market(self):
        """Reads the market."""
        pair = PAIR[BOOK]
        ticker = await self.exchange.fetch_ticker(pair)
        trades = await self.exchange.fetch_trades(pair)
        candles = await self.exchange.fetch_ohlcv(pair, "1m")
        return [ticker["last"], len(trades), len(candles)]

    async def book(self):
        """Keeps a book."""
        books = Books()

        async def keep():
            while True:
                book = await self.exchange.watch_order_book(PAIR[BOOK])
                books.keep(book["nonce"], book["bids"], book["asks"])

        async def read():
            book = await self.exchange.fetch_order_book(PAIR[BOOK], LEVELS)
            return book["nonce"], book["bids"], book["asks"]

        keeper = asyncio.create_task(keep())
        equal = await for_five_seconds(books, read)
        keeper.cancel()
        return equal

    async def place(self, side, price, quantity):
        """Places a limit order."""
        order = await self.exchange.create_order(PAIR[TRADED], "limit", side, quantity, price)
        return order["id"]

    async def amend(self, order, side, price, quantity):
        """Replaces an order."""
        limit = (PAIR[TRADED], "limit", side, quantity, price)
        return (await self.exchange.edit_order(order, *limit))["id"]

    async def cancel(self, order):
        """Cancels an order."""
        return (await self.exchange.cancel_order(order, PAIR[TRADED]))["status"]

    async def take(self, side, quantity):
        """Trades at the market."""
        order = await self.exchange.create_order(PAIR[TRADED], "market", side, quantity)
        return order["filled"]

    async def events(self):
        """Returns what the own orders' stream has shown."""
        return self.seen

    async def trades(self):
        """Reads the own trades."""
        trades = await self.exchange.fetch_my_trades(PAIR[TRADED])
        return [[t["id"], t["order"], t["side"], t["takerOrMaker"], t["price"], t["amount"],
                 t["fee"]["cost"]] for t in trades]

    async def balances(self):
        """Reads the balances."""
        return {k: v for k, v in (await self.exchange.fetch_balance())["total"].items() if v}

    async def close(self):
        """Ends the connections."""
        self.own.cancel()
        await self.exchange.close()


serve(Client())
