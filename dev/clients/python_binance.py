"""python-binance, with its DepthCacheManager."""

import asyncio

from binance import AsyncClient, BinanceSocketManager, DepthCacheManager
from binance.client import BaseClient

from adapter import BASE, BOOK, KEY, LEVELS, SECRET, TRADED, WS, Books, for_five_seconds, serve


class Client:
    """Only URLs and keys are its own."""

    async def start(self):
        """Logs in and follows the own orders."""
        BaseClient.API_URL, BaseClient.MARGIN_API_URL = BASE + "/api", BASE + "/sapi"
        BaseClient.WS_API_URL = WS + "/ws-api/v3"
        BinanceSocketManager.STREAM_URL = WS + "/"
        self.rest = await AsyncClient.create(KEY, SECRET)
        self.sockets = BinanceSocketManager(self.rest)
        self.seen = []
        ready = asyncio.Event()
        self.own = asyncio.create_task(self.follow(ready))
        await ready.wait()
        return float((await self.rest.get_asset_balance("USDT"))["free"])

    async def follow(self, ready):
        """Keeps what happens to the own orders."""
        async with self.sockets.user_socket() as socket:
            ready.set()
            while True:
                event = await socket.recv()
                event = event.get("event", event)
                if event["e"] == "executionReport":
                    self.seen.append([event["i"], event["X"], event["z"]])

    async def market(self):
        """Reads the market."""
        ticker = await self.rest.get_ticker(symbol=BOOK)
        trades = await self.rest.get_recent_trades(symbol=BOOK)
        candles = await self.rest.get_klines(symbol=BOOK, interval="1m")
        return [float(ticker["lastPrice"]), len(trades), len(candles)]

    async def book(self):
        """Keeps a book."""
        books = Books()
        manager = DepthCacheManager(self.rest, BOOK, bm=self.sockets, ws_interval=100)

        async def keep():
            async with manager as socket:
                while True:
                    book = await socket.recv()
                    if book is not None:
                        number = manager._last_update_id
                        books.keep(number, book.get_bids(), book.get_asks())

        async def read():
            book = await self.rest.get_order_book(symbol=BOOK, limit=LEVELS)
            return book["lastUpdateId"], book["bids"], book["asks"]

        keeper = asyncio.create_task(keep())
        equal = await for_five_seconds(books, read)
        keeper.cancel()
        return equal

    async def place(self, side, price, quantity):
        """Places a limit order."""
        limit = {"timeInForce": "GTC", "price": str(price), "quantity": str(quantity)}
        order = await self.rest.create_order(
            symbol=TRADED, side=side.upper(), type="LIMIT", **limit)
        return order["orderId"]

    async def amend(self, order, side, price, quantity):
        """Replaces an order."""
        both = await self.rest.cancel_replace_order(
            symbol=TRADED, cancelOrderId=order, cancelReplaceMode="STOP_ON_FAILURE", type="LIMIT",
            side=side.upper(), timeInForce="GTC", price=str(price), quantity=str(quantity))
        return both["newOrderResponse"]["orderId"]

    async def cancel(self, order):
        """Cancels an order."""
        return (await self.rest.cancel_order(symbol=TRADED, orderId=order))["status"]

    async def take(self, side, quantity):
        """Trades at the market."""
        order = await self.rest.create_order(
            symbol=TRADED, side=side.upper(), type="MARKET", quantity=str(quantity))
        return float(order["executedQty"])

    async def events(self):
        """Returns what the own orders' stream has shown."""
        return self.seen

    async def trades(self):
        """Reads the own trades."""
        return [[t["id"], t["orderId"], "buy" if t["isBuyer"] else "sell",
                 "maker" if t["isMaker"] else "taker", t["price"], t["qty"], t["commission"]]
                for t in await self.rest.get_my_trades(symbol=TRADED)]

    async def balances(self):
        """Reads the balances."""
        account = await self.rest.get_account()
        return {b["asset"]: float(b["free"]) + float(b["locked"]) for b in account["balances"]}

    async def close(self):
        """Ends the connections."""
        self.own.cancel()
        await asyncio.gather(self.own, return_exceptions=True)
        await self.rest.close_connection()


serve(Client())
