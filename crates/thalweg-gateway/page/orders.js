// The user: key, balances, open orders and executions, kept by the events of the user data stream.

import { short, clock } from "./decimal.js";
import { ApiError } from "./connection.js";

const FILLS_SHOWN = 100;
const STORED = "thalweg key";

/** Returns a table row of texts; the first says the side, and is its head. */
export function row(kind, cells) {
  const made = document.createElement("tr");
  made.className = kind;
  for (const text of cells) made.insertCell().textContent = text;
  return made;
}

const element = (id) => document.getElementById(id);
const side = (name) => (name === "BUY" ? ["buy", "▲ B"] : ["sell", "▼ S"]);
const typeOf = (order) => order.type.replaceAll("_", " ").toLowerCase();

export class Orders {
  /** `changed` is called after each change, `say` and `fail` tell the user something. */
  constructor({ changed, say, fail }) {
    Object.assign(this, { changed, say, fail });
    this.open = new Map();
    this.balances = new Map();
    this.key = null;
    this.isOn = false;
    element("key").addEventListener("submit", (event) => {
      event.preventDefault();
      const [apiKey, secret] = [element("api-key"), element("secret")].map((e) => e.value.trim());
      this.key = { apiKey, secret };
      if (element("keep").checked) sessionStorage.setItem(STORED, JSON.stringify(this.key));
      this.logOn(true);
    });
    element("leave").addEventListener("click", () => this.leave());
    element("cancel-all").addEventListener("click", () => this.cancelAll());
    const stored = sessionStorage.getItem(STORED);
    if (stored) this.key = JSON.parse(stored);
  }

  /** Logs on with the key, if there is one; `isNew` where the user has just entered it. */
  async logOn(isNew = false) {
    const note = element("key-text");
    if (!this.key) return;
    if (!globalThis.crypto?.subtle) {
      note.textContent = "Browsers sign on pages from localhost or by HTTPS only.";
      return;
    }
    note.textContent = "…";
    try {
      await this.api.logOn(this.key.apiKey, this.key.secret);
    } catch (error) {
      note.textContent = `Not logged on: ${error.message}`;
      this.isOn = false;
      if (error instanceof ApiError) this.forget();
      if (isNew) this.fail(note.textContent);
      this.show();
      return;
    }
    note.textContent = "";
    element("secret").value = "";
    this.isOn = true;
    await this.load();
    if (isNew) this.say("Logged on.");
  }

  /** Reads what events will change. */
  async load() {
    try {
      const [account, open] = await Promise.all([
        this.api.own("account.status"), this.api.own("openOrders.status")]);
      this.balances = new Map(account.balances.map((one) => [one.asset, one]));
      this.canTrade = account.canTrade;
      this.open = new Map(open.map((order) => [order.orderId, order]));
      await this.loadFills();
    } catch (error) {
      this.fail(error.message);
    }
    this.show();
  }

  async loadFills() {
    if (!this.isOn || !this.symbol) return;
    const params = { symbol: this.symbol.name, limit: FILLS_SHOWN };
    const trades = await this.api.own("myTrades", params);
    element("fills").replaceChildren(...trades.reverse().map((one) => this.fillRow({
      ...one, side: one.isBuyer ? "BUY" : "SELL", role: one.isMaker ? "maker" : "taker",
    })));
  }

  follow(symbol) {
    this.symbol = symbol;
    this.loadFills().catch((error) => this.fail(error.message));
  }

  /** Ends the session; the key is forgotten. */
  async leave() {
    this.forget();
    this.isOn = false;
    this.open.clear();
    this.balances.clear();
    element("fills").replaceChildren();
    element("key-text").textContent = "Logged off.";
    this.show();
    await this.api.request("session.logout").catch(() => {});
  }

  forget() {
    this.key = null;
    sessionStorage.removeItem(STORED);
  }

  /** Takes an event of the user data stream. */
  take(event) {
    if (event.e === "outboundAccountPosition") {
      for (const { a, f, l } of event.B) this.balances.set(a, { asset: a, free: f, locked: l });
    } else if (event.e === "executionReport") {
      this.report(event);
    } else if (event.e === "eventStreamTerminated") {
      this.isOn = false;
      this.fail("The server has ended the session.");
    } else if (event.e === "balanceUpdate") {
      this.load();
      return;
    }
    this.show();
  }

  report(event) {
    const order = {
      orderId: event.i, symbol: event.s, side: event.S, type: event.o, price: event.p,
      stopPrice: event.P, origQty: event.q, executedQty: event.z, status: event.X, time: event.O,
    };
    const isOpen = ["NEW", "PARTIALLY_FILLED"].includes(event.X);
    if (isOpen) this.open.set(event.i, order);
    else this.open.delete(event.i);
    if (event.x === "TRADE") {
      const fill = {
        symbol: event.s, side: event.S, price: event.L, qty: event.l, commission: event.n,
        commissionAsset: event.N, time: event.T, role: event.m ? "maker" : "taker",
      };
      element("fills").prepend(this.fillRow(fill));
      if (element("fills").children.length > FILLS_SHOWN) element("fills").lastChild.remove();
      const done = event.X === "FILLED" ? "Filled" : "Filled in part";
      this.say(`${done}: ${event.S === "BUY" ? "bought" : "sold"} ${short(event.l)} at `
        + `${short(event.L)}, ${short(event.z)} of ${short(event.q)}.`);
    } else if (!isOpen) {
      this.say(`${event.x === "CANCELED" ? "Cancelled" : `Order ${event.X.toLowerCase()}`}: `
        + `${event.S === "BUY" ? "buy" : "sell"} ${short(event.q)} ${event.s}.`);
    }
  }

  fillRow(fill) {
    const [kind, sign] = side(fill.side);
    return row(kind, [sign, fill.symbol, fill.role, short(fill.price, 2), short(fill.qty),
      `${short(fill.commission)} ${fill.commissionAsset ?? ""}`, clock(fill.time, true)]);
  }

  openRow(order) {
    const [kind, sign] = side(order.side);
    const price = /[1-9]/.test(order.price) ? short(order.price, 2) : "market";
    const at = /[1-9]/.test(order.stopPrice ?? "") ? ` @ ${short(order.stopPrice, 2)}` : "";
    const made = row(kind, [sign, order.symbol, typeOf(order), price + at, short(order.origQty),
      short(order.executedQty), clock(order.time), ""]);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "✕";
    const name = `${order.side === "BUY" ? "buy" : "sell"} ${short(order.origQty)} at ${price}`;
    button.setAttribute("aria-label", `Cancel: ${name}`);
    button.title = "Cancel";
    button.addEventListener("click", () => this.cancel(order));
    made.lastChild.append(button);
    return made;
  }

  async cancel(order) {
    const params = { symbol: order.symbol, orderId: order.orderId };
    await this.api.own("order.cancel", params).catch((error) => this.fail(error.message));
  }

  async cancelAll() {
    const symbols = new Set([...this.open.values()].map((order) => order.symbol));
    for (const symbol of symbols) {
      await this.api.own("openOrders.cancelAll", { symbol }).catch((error) => {
        this.fail(error.message);
      });
    }
  }

  show() {
    const { isOn } = this;
    element("key").hidden = isOn;
    element("balances").hidden = !isOn;
    element("leave").hidden = !isOn;
    const open = [...this.open.values()].sort((one, other) => other.time - one.time);
    element("cancel-all").hidden = !open.length;
    const text = isOn ? `${open.length} open` : "log on to see them";
    element("orders-text").textContent = isOn && !this.canTrade ? `${text}, key only reads` : text;
    const body = element("open");
    // A button that has the focus keeps it, as the one at its place.
    const at = [...body.querySelectorAll("button")].indexOf(document.activeElement);
    body.replaceChildren(...open.map((order) => this.openRow(order)));
    if (at >= 0) {
      const buttons = [...body.querySelectorAll("button")];
      (buttons[Math.min(at, buttons.length - 1)] ?? element("orders")).focus();
    }
    const rows = [...this.balances.values()].map((one) => {
      return row("", [one.asset, short(one.free, 2), short(one.locked, 2)]);
    });
    element("balances").tBodies[0].replaceChildren(...rows);
    this.changed();
  }
}
