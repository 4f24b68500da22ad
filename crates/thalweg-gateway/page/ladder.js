// The order book on the screen: levels by price groups, bars of their sums, own orders marked.

import { units, text, short, floor, ceil } from "./decimal.js";

/** Steps of groups, in ticks. */
const GROUPS = [1n, 2n, 5n, 10n, 20n, 50n, 100n, 500n, 1000n];

export class Ladder {
  /** `chosen(price, quantity)` is called with a level's price, and the quantity up to it if asked. */
  constructor(chosen) {
    this.chosen = chosen;
    this.table = document.getElementById("ladder");
    this.body = this.table.querySelector("tbody");
    this.group = document.getElementById("group");
    this.note = document.getElementById("book-text");
    this.orders = [];
    this.group.addEventListener("change", () => this.ask());
    this.table.addEventListener("click", (event) => this.choose(event.target, event.shiftKey));
    this.table.addEventListener("keydown", (event) => this.key(event));
    const narrow = matchMedia("(max-width: 699px)");
    narrow.addEventListener("change", () => this.build(narrow.matches ? 8 : 16));
    this.build(narrow.matches ? 8 : 16);
  }

  /** Makes the rows, which stay: only their texts change. */
  build(depth) {
    this.depth = depth;
    const make = (kind) => {
      const made = document.createElement("tr");
      made.className = kind;
      made.tabIndex = -1;
      for (let at = 0; at < 4; at += 1) {
        const cell = made.insertCell();
        cell.setAttribute("role", "gridcell");
        cell.append("");
      }
      made.setAttribute("role", "row");
      return made;
    };
    this.asks = Array.from({ length: depth }, () => make("sell"));
    this.bids = Array.from({ length: depth }, () => make("buy"));
    this.middle = document.createElement("tr");
    this.middle.className = "spread";
    const cell = this.middle.insertCell();
    cell.colSpan = 4;
    this.body.replaceChildren(...[...this.asks].reverse(), this.middle, ...this.bids);
    this.bids[0].tabIndex = 0;
    this.ask();
  }

  follow(symbol, book) {
    this.symbol = symbol;
    this.book = book;
    const options = GROUPS.map((by) => {
      const size = by * symbol.tick;
      return new Option(short(text(size, symbol.priceScale)), String(size));
    });
    this.group.replaceChildren(...options);
    this.ask();
  }

  /** Has the book drawn with the next frame. */
  ask() {
    if (this.isAsked || !this.book) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.show();
    });
  }

  /** Returns the best groups of a side: price, quantity and sum, in units. */
  groups(side, isBid) {
    const { priceScale, sizeScale } = this.symbol;
    const size = BigInt(this.group.value);
    const levels = [...side].map(([price, quantity]) => [
      units(price, priceScale), units(quantity, sizeScale)]);
    levels.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
    if (isBid) levels.reverse();
    const found = [];
    let sum = 0n;
    for (const [price, quantity] of levels) {
      const at = isBid ? floor(price, size) : ceil(price, size);
      if (found.at(-1)?.price !== at) {
        if (found.length === this.depth) break;
        found.push({ price: at, quantity: 0n, sum });
      }
      const group = found.at(-1);
      group.quantity += quantity;
      sum += quantity;
      group.sum = sum;
    }
    return found;
  }

  show() {
    const { symbol, book } = this;
    this.own = this.marks();
    const bids = this.groups(book.bids, true);
    const asks = this.groups(book.asks, false);
    const most = [bids.at(-1)?.sum ?? 0n, asks.at(-1)?.sum ?? 0n].reduce((a, b) => (a > b ? a : b));
    this.side(this.bids, bids, "bid", most);
    this.side(this.asks, asks, "ask", most);
    const [bid, ask] = [bids[0]?.price, asks[0]?.price];
    const gap = bid !== undefined && ask !== undefined;
    const spread = gap ? short(text(ask - bid, symbol.priceScale), symbol.priceDecimals) : "–";
    this.middle.firstChild.textContent = book.last === null ? "waiting for the book"
      : `spread ${spread}`;
    const gaps = book.gaps ? `, gaps: ${book.gaps}` : "";
    const levels = book.bids.size + book.asks.size;
    this.note.textContent = book.last === null ? "" : `${levels} levels, update ${book.last}${gaps}`;
  }

  side(rows, groups, name, most) {
    const { symbol } = this;
    rows.forEach((row, at) => {
      const group = groups[at];
      const texts = group ? [
        name === "bid" ? "B" : "A",
        short(text(group.price, symbol.priceScale), symbol.priceDecimals),
        short(text(group.quantity, symbol.sizeScale), symbol.sizeDecimals),
        short(text(group.sum, symbol.sizeScale), symbol.sizeDecimals),
      ] : ["", "", "", ""];
      const isOwn = group && this.own.has(`${name} ${group.price}`);
      if (isOwn) texts[0] += "•";
      texts.forEach((value, cell) => {
        const node = row.cells[cell].firstChild;
        if (node.data !== value) node.data = value;
      });
      const part = group && most > 0n ? Number((group.sum * 1000n) / most) / 10 : 0;
      row.style.setProperty("--part", `${part}%`);
      row.classList.toggle("own", Boolean(isOwn));
    });
  }

  /** Takes our open orders, whose levels are marked. */
  mark(orders) {
    this.orders = orders;
    this.ask();
  }

  marks() {
    const { symbol } = this;
    const size = BigInt(this.group.value);
    return new Set(this.orders.filter((order) => order.symbol === symbol.name).map((order) => {
      const price = units(order.price, symbol.priceScale) ?? 0n;
      const isBid = order.side === "BUY";
      return `${isBid ? "bid" : "ask"} ${isBid ? floor(price, size) : ceil(price, size)}`;
    }));
  }

  choose(target, withQuantity) {
    const row = target.closest("tbody tr");
    const price = row?.cells[1]?.textContent;
    if (!price) return;
    const sum = row.cells[3].textContent;
    this.point(row, false);
    this.chosen(price, withQuantity ? sum : null);
  }

  /** Makes a row the one that Tab comes to. */
  point(row, hasFocus) {
    this.body.querySelectorAll("[tabindex='0']").forEach((other) => { other.tabIndex = -1; });
    row.tabIndex = 0;
    if (hasFocus) row.focus();
  }

  focus() {
    this.point(this.bids[0], true);
  }

  key(event) {
    const rows = [...this.body.querySelectorAll("tr[role=row]")];
    const at = rows.indexOf(event.target);
    if (at < 0) return;
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.point(rows[Math.max(0, Math.min(rows.length - 1, to))], true);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(event.target, event.shiftKey);
    }
  }
}
