// Runs a trading program's library for `trade.py`, as adapter.py does for those in Python.

import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

// The market that trades by itself, whose book is kept, and that where the programs trade.
export const BOOK = "BTCUSDT", TRADED = "SOLUSDT", LEVELS = 20;
export const [BASE, KEY, SECRET] = process.argv.slice(2, 5);
export const WS = BASE.replace("http", "ws");

// The best levels of a kept book at each update id, and REST's snapshots.
export class Books {
    kept = new Map();
    read = new Map();

    static best(bids, asks) {
        const level = (level) => [Number(level[0]), Number(level[1])];
        return JSON.stringify([bids, asks].map((side) => side.slice(0, LEVELS).map(level)));
    }

    keep(number, bids, asks) {
        this.kept.set(Number(number), Books.best(bids, asks));
    }

    snapshot(number, bids, asks) {
        this.read.set(Number(number), Books.best(bids, asks));
    }

    // Compares the states that both have. Returns how many there are.
    equal() {
        let equal = 0;
        for (const [number, read] of this.read) {
            const kept = this.kept.get(number);
            if (kept === undefined) continue;
            if (kept !== read) throw Error(`at ${number} the book is ${kept}, REST has ${read}`);
            equal += 1;
        }
        return equal;
    }
}

// A book made of a snapshot and the events after it, for libraries that keep none.
export class Levels {
    events = [];
    number = null;

    constructor(books) {
        this.books = books;
    }

    begin(number, bids, asks) {
        this.number = Number(number);
        [this.bids, this.asks] = [new Map(bids), new Map(asks)];
        this.events.forEach((event) => this.apply(...event));
    }

    event(...event) {
        if (this.number === null) this.events.push(event);
        else this.apply(...event);
    }

    apply(first, last, bids, asks) {
        if (last <= this.number) return;
        if (first > this.number + 1) throw Error(`${first} follows ${this.number}`);
        this.number = last;
        for (const [side, levels] of [[this.bids, bids], [this.asks, asks]]) {
            for (const [price, quantity] of levels) {
                if (Number(quantity) === 0) side.delete(price);
                else side.set(price, quantity);
            }
        }
        const sorted = (side, sign) => [...side].sort((a, b) => sign * (a[0] - b[0]));
        this.books.keep(last, sorted(this.bids, -1), sorted(this.asks, 1));
    }
}

// Reads a snapshot now and then for five seconds, and on where none is of a state that was kept: on
// a busy machine few are. Returns how many equal the kept book.
export async function forFiveSeconds(books, read) {
    const end = Date.now() + 5000;
    while (Date.now() < end || (books.equal() === 0 && Date.now() < end + 60_000)) {
        books.snapshot(...await read());
        await sleep(250);
    }
    await sleep(500);
    return books.equal();
}

// Answers requests until standard input ends.
export async function serve(client) {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const { do: name, ...request } = JSON.parse(line);
        const result = await client[name](request);
        const plain = (_, value) => (typeof value === "bigint" ? Number(value) : value);
        process.stdout.write(`answer ${JSON.stringify(result, plain)}\n`);
    }
    process.exit(0);
}
