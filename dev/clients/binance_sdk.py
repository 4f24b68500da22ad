"""binance-sdk-spot in Python. It keeps no book, so `Levels` does."""

import asyncio

from binance_common.configuration import (ConfigurationRestAPI, ConfigurationWebSocketAPI,
                                          ConfigurationWebSocketStreams)
from binance_sdk_spot.spot import Spot

from adapter import (BASE, BOOK, KEY, LEVELS, SECRET, TRADED, WS, Books, Levels, for_five_seconds,
                     serve)


class Client:
    """Only URLs and keys are its own."""

    async def start(self):
        """Logs in and follows the own orders."""
        keys = {"api_key": KEY, "api_secret": SECRET}
        self.spot = Spot(
            config_rest_api=ConfigurationRestAPI(base_path=BASE, **keys),
            config_ws_api=ConfigurationWebSocketAPI(stream_url=WS + "/ws-api/v3", **keys),
            config_ws_streams=ConfigurationWebSocketStreams(stream_url=WS))
        self.seen = []
        self.api = await self.spot.websocket_api.create_connection()
        own = await self.api.user_data_stream_subscribe_signature()
        own.stream.on("message", self.event)
        return (await self.balances())["USDT"]

    async def rest(self, name, **parameters):
        """Calls a method of REST, which blocks, in another thread."""
        method = getattr(self.spot.rest_api, name)
        return (await asyncio.to_thread(method, **parameters)).data()

    def event(self, event):
        """Keeps what happens to an own order."""
        event = getattr(event, "actual_instance", event)
        if type(event).__name__ == "ExecutionReport":
            self.seen.append([event.i, event.X, event.z])

    async def market(self):
        """Reads the market."""
        ticker = await self.rest("ticker24hr", symbol=BOOK)
        trades = await self.rest("get_trades", symbol=BOOK)
        candles = await self.rest("klines", symbol=BOOK, interval="1m")
        ticker = getattr(ticker, "actual_instance", ticker)
        return [float(ticker.last_price), len(trades), len(candles)]

    async def book(self):
        """Keeps a book."""
        books = Books()
        levels = Levels(books)
        streams = await self.spot.websocket_streams.create_connection()
        stream = await streams.diff_book_depth(symbol=BOOK.lower(), update_speed="100ms")
        stream.on("message", lambda e: levels.event(e.U, e.u, e.b, e.a))
        await asyncio.sleep(0.3)
        book = await self.rest("depth", symbol=BOOK, limit=5000)
        levels.begin(book.last_update_id, book.bids, book.asks)

        async def read():
            book = await self.rest("depth", symbol=BOOK, limit=LEVELS)
            return book.last_update_id, book.bids, book.asks

        equal = await for_five_seconds(books, read)
        await streams.close_connection()
        return equal

    async def place(self, side, price, quantity):
        """Places a limit order."""
        order = await self.rest("new_order", symbol=TRADED, side=side.upper(), type="LIMIT",
                                time_in_force="GTC", price=price, quantity=quantity)
        return order.order_id

    async def amend(self, order, side, price, quantity):
        """Makes an order smaller."""
        await self.rest("order_amend_keep_priority", symbol=TRADED, order_id=order,
                        new_qty=quantity)
        return order

    async def cancel(self, order):
        """Cancels an order."""
        return (await self.rest("delete_order", symbol=TRADED, order_id=order)).status

    async def take(self, side, quantity):
        """Trades at the market."""
        order = await self.api.order_place(
            symbol=TRADED, side=side.upper(), type="MARKET", quantity=quantity)
        return float(order.data().result.executed_qty)

    async def events(self):
        """Returns what the own orders' stream has shown."""
        return self.seen

    async def trades(self):
        """Reads the own trades."""
        return [[t.id, t.order_id, "buy" if t.is_buyer else "sell",
                 "maker" if t.is_maker else "taker", t.price, t.qty, t.commission]
                for t in await self.rest("my_trades", symbol=TRADED)]

    async def balances(self):
        """Reads the balances."""
        account = await self.rest("get_account")
        return {b.asset: float(b.free) + float(b.locked) for b in account.balances}

    async def close(self):
        """Ends the connections."""
        await self.api.close_connection()


serve(Client())
