// The last trades, newest first. The sign says which side took.

import { short, clock } from "./decimal.js";
import { get } from "./connection.js";
import { row } from "./orders.js";

const SHOWN = 60;

export class Tape {
  /** `last` gets the price of each trade, and whether the taker bought. */
  constructor(streams, last) {
    this.streams = streams;
    this.last = last;
    this.body = document.getElementById("trades");
    this.name = null;
    this.waiting = [];
  }

  follow(symbol) {
    if (this.name) this.streams.leave(this.name);
    this.symbol = symbol;
    this.name = `${symbol.name.toLowerCase()}@trade`;
    const { name } = this;
    this.newest = -1;
    this.body.replaceChildren();
    const begin = async () => {
      const params = { symbol: symbol.name, limit: SHOWN };
      const trades = await get("/api/v3/trades", params).catch(() => []);
      if (name !== this.name) return;
      for (const { id, price, qty, time, isBuyerMaker } of trades) {
        this.take({ t: id, p: price, q: qty, T: time, m: isBuyerMaker });
      }
    };
    this.streams.follow(name, (trade) => this.take(trade), begin);
  }

  take(trade) {
    // What the snapshot and the stream both have is shown once.
    if (trade.t <= this.newest) return;
    this.newest = trade.t;
    this.waiting.push(trade);
    if (this.waiting.length > SHOWN) this.waiting.shift();
    if (this.waiting.length === 1) requestAnimationFrame(() => this.show());
  }

  show() {
    const { waiting, symbol } = this;
    this.waiting = [];
    const rows = waiting.map(({ p, q, T, m }) => {
      const price = short(p, symbol.priceDecimals);
      const cells = [m ? "▼" : "▲", price, short(q, symbol.sizeDecimals), clock(T)];
      const made = row(m ? "sell" : "buy", cells);
      made.firstChild.setAttribute("aria-label", m ? "sold" : "bought");
      return made;
    });
    this.body.prepend(...rows.reverse());
    while (this.body.children.length > SHOWN) this.body.lastChild.remove();
    const newest = waiting.at(-1);
    if (newest) this.last(short(newest.p, symbol.priceDecimals), !newest.m);
  }
}
