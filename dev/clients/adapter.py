"""Runs a trading program's library for `trade.py`: a request is a line of JSON on standard input,
and its answer a line on standard output after the word `answer`, as libraries print there, too.

A script of a library makes a class whose methods are the requests, and calls `serve` with it.
"""

import asyncio
import json
import sys

# The market that trades by itself, whose book is kept, and that where the programs trade.
BOOK, TRADED = "BTCUSDT", "SOLUSDT"
BASE, KEY, SECRET = sys.argv[1:4]
WS = BASE.replace("http", "ws", 1)
LEVELS = 20


class Books:
    """The best levels of a kept book at each update id, and REST's snapshots."""

    def __init__(self):
        self.kept = {}
        self.read = {}

    def keep(self, number, bids, asks):
        """Adds a state of the kept book."""
        self.kept[number] = self.best(bids, asks)

    def snapshot(self, number, bids, asks):
        """Adds a snapshot of REST."""
        self.read[number] = self.best(bids, asks)

    @staticmethod
    def best(bids, asks):
        """Returns the best levels of both sides as numbers."""
        sides = (bids, asks)
        return [[[float(x) for x in level[:2]] for level in side[:LEVELS]] for side in sides]

    def equal(self):
        """Compares the states that both have. Returns how many there are."""
        common = self.kept.keys() & self.read.keys()
        for number in common:
            kept, read = self.kept[number], self.read[number]
            assert kept == read, f"at {number} the book is {kept}, REST has {read}"
        return len(common)


class Levels:
    """A book made of a snapshot and the events after it, for libraries that keep none."""

    def __init__(self, books):
        self.books, self.events, self.number = books, [], None
        self.bids, self.asks = {}, {}

    def begin(self, number, bids, asks):
        """Begins with a snapshot, and applies the events that came before it."""
        self.number = number
        self.bids, self.asks = ({p: q for p, q in side} for side in (bids, asks))
        for event in self.events:
            self.apply(*event)

    def event(self, first, last, bids, asks):
        """Applies an event, or keeps it until there is a snapshot."""
        if self.number is None:
            self.events.append((first, last, bids, asks))
        else:
            self.apply(first, last, bids, asks)

    def apply(self, first, last, bids, asks):
        """Applies an event that follows."""
        if last <= self.number:
            return
        assert first <= self.number + 1, f"{first} follows {self.number}"
        self.number = last
        for side, levels in ((self.bids, bids), (self.asks, asks)):
            for price, quantity in levels:
                side[price] = quantity
                if float(quantity) == 0:
                    del side[price]
        by_price = [sorted(side.items(), key=lambda level: float(level[0]))
                    for side in (self.bids, self.asks)]
        self.books.keep(last, by_price[0][::-1], by_price[1])


async def for_five_seconds(books, read):
    """Reads a snapshot now and then for five seconds, and on where none is of a state that was
    kept: on a busy machine few are. Returns how many equal the kept book.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + 5
    while loop.time() < end or books.equal() == 0 and loop.time() < end + 60:
        books.snapshot(*await read())
        await asyncio.sleep(0.25)
    await asyncio.sleep(0.5)
    return books.equal()


async def answer(client):
    """Answers requests until standard input ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        request = json.loads(line)
        result = await getattr(client, request.pop("do"))(**request)
        print("answer", json.dumps(result), flush=True)
    await client.close()


def serve(client):
    """Answers requests with a library until standard input ends."""
    asyncio.run(answer(client))
