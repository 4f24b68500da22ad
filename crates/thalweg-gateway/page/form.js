// The order form. Its sums are exact: BigInt units, never floats.

import { units, text, short, floor } from "./decimal.js";

const element = (id) => document.getElementById(id);
const LIMITED = ["LIMIT", "LIMIT_MAKER", "STOP_LOSS_LIMIT"];
const STOPS = ["STOP_LOSS", "STOP_LOSS_LIMIT"];
const LOG_ON = "Log on to place orders.";

export class Form {
  /** `best(side)` returns the best price of the side that an order of `side` meets. */
  constructor({ api, orders, best, say, fail }) {
    Object.assign(this, { api, orders, best, say, fail });
    this.form = element("order");
    this.form.addEventListener("input", () => this.show());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.place();
    });
    this.form.querySelectorAll("[data-part]").forEach((button) => {
      button.addEventListener("click", () => this.part(BigInt(button.dataset.part)));
    });
    this.canSend = false;
  }

  follow(symbol) {
    this.symbol = symbol;
    for (const id of ["price", "stop", "quantity"]) element(id).value = "";
    this.show();
  }

  get side() {
    return this.form.elements.side.value;
  }

  /** Chooses a side, and goes to the first field that is empty. */
  start(side) {
    this.form.elements.side.value = side;
    this.show();
    const fields = ["stop", "price", "quantity"].map(element);
    const shown = fields.filter((field) => !field.parentElement.hidden);
    (shown.find((field) => !field.value) ?? shown[0]).focus();
  }

  /** Fills in a price, and a quantity if there is one. */
  fill(price, quantity) {
    const type = element("type");
    if (!LIMITED.includes(type.value)) type.value = "LIMIT";
    element("price").value = price;
    if (quantity) element("quantity").value = quantity;
    this.show();
  }

  /** Returns the units of price and quantity, null where they are missing or wrong. */
  read() {
    const { symbol } = this;
    return {
      type: element("type").value,
      price: units(element("price").value, symbol.priceScale),
      stop: units(element("stop").value, symbol.priceScale),
      quantity: units(element("quantity").value, symbol.sizeScale),
    };
  }

  /** Returns a price for what a market order may be worth. */
  priceOf({ type, price, stop }) {
    if (LIMITED.includes(type)) return price;
    if (type === "STOP_LOSS") return stop;
    return units(this.best(this.side) ?? "", this.symbol.priceScale);
  }

  /** Fills in a part of what is free: a market order to buy may find worse prices than the best. */
  part(percent) {
    const { symbol } = this;
    const asset = this.side === "BUY" ? symbol.quote : symbol.base;
    const free = this.orders.balances.get(asset)?.free;
    if (!free) return;
    let quantity = 0n;
    if (this.side === "SELL") {
      quantity = (units(free, symbol.sizeScale) * percent) / 100n;
    } else {
      const price = this.priceOf(this.read());
      if (!price) {
        element("order-text").textContent = "A price is needed for that.";
        return;
      }
      const scale = symbol.priceScale + symbol.sizeScale;
      const money = units(free, symbol.quoteScale) * 10n ** BigInt(scale);
      quantity = (money * percent) / (100n * price * 10n ** BigInt(symbol.quoteScale));
    }
    quantity = floor(quantity, symbol.step);
    element("quantity").value = short(text(quantity, symbol.sizeScale));
    this.show();
  }

  /** Returns what is wrong by field. */
  wrong(values) {
    const { symbol } = this;
    const found = {};
    const price = (id, value) => {
      if (value === null || value <= 0n) found[id] = "a price is missing, or has too many decimals";
      else if (value % symbol.tick) {
        found[id] = `prices are multiples of ${short(text(symbol.tick, symbol.priceScale))}`;
      }
    };
    if (STOPS.includes(values.type)) price("stop", values.stop);
    if (LIMITED.includes(values.type)) price("price", values.price);
    const { quantity } = values;
    if (quantity === null || quantity <= 0n) {
      found.quantity = "a quantity is missing, or has too many decimals";
    } else if (quantity % symbol.step) {
      found.quantity = `quantities are multiples of ${short(text(symbol.step, symbol.sizeScale))}`;
    }
    return found;
  }

  show() {
    const { symbol } = this;
    if (!symbol) return;
    const type = element("type").value;
    element("price-line").hidden = !LIMITED.includes(type);
    element("stop-line").hidden = !STOPS.includes(type);
    element("life-line").hidden = !["LIMIT", "STOP_LOSS_LIMIT"].includes(type);
    element("life").querySelector("[value=FOK]").disabled = type !== "LIMIT";
    for (const id of ["price", "stop"]) {
      element(id).previousElementSibling.textContent =
        `${id === "price" ? "Price" : "Stop price"} (${symbol.quote})`;
    }
    element("quantity").previousElementSibling.textContent = `Quantity (${symbol.base})`;
    const values = this.read();
    const price = this.priceOf(values);
    const scale = symbol.priceScale + symbol.sizeScale;
    const isKnown = price !== null && values.quantity !== null;
    const worth = isKnown ? short(text(price * values.quantity, scale), 2) : "–";
    const about = isKnown && !LIMITED.includes(type) ? "≈ " : "";
    element("worth").textContent = `${about}${worth} ${symbol.quote}`;
    element("order-text").textContent = "";
    this.showFree();
    const isBuy = this.side === "BUY";
    const button = element("submit");
    button.textContent = `${isBuy ? "▲ Buy" : "▼ Sell"} ${symbol.base}`;
    button.className = `main ${isBuy ? "buy" : "sell"}`;
    button.disabled = !this.canSend;
    for (const id of ["price", "stop", "quantity"]) element(id).removeAttribute("aria-invalid");
  }

  showFree() {
    const { symbol } = this;
    const asset = this.side === "BUY" ? symbol.quote : symbol.base;
    const free = this.orders.balances.get(asset)?.free;
    element("free").textContent = free ? `${short(free, 2)} ${asset}` : "–";
    const note = element("order-text");
    if (!this.orders.isOn) note.textContent = LOG_ON;
    else if (note.textContent === LOG_ON) note.textContent = "";
  }

  /**
   * Allows orders or not: there is a connection, and a user who may trade. It is called at each
   * event of the connection or of own orders, so what the form says of its fields stays.
   */
  allow(can) {
    this.canSend = can;
    element("submit").disabled = !can;
    if (this.symbol) this.showFree();
  }

  async place() {
    const { symbol } = this;
    if (!this.canSend) return;
    const values = this.read();
    const wrong = this.wrong(values);
    const [field] = Object.keys(wrong);
    if (field) {
      element(field).setAttribute("aria-invalid", "true");
      element("order-text").textContent = `Not sent: ${wrong[field]}.`;
      element(field).focus();
      return;
    }
    const { type } = values;
    const params = { symbol: symbol.name, side: this.side, type };
    params.quantity = text(values.quantity, symbol.sizeScale);
    if (LIMITED.includes(type)) params.price = text(values.price, symbol.priceScale);
    if (STOPS.includes(type)) params.stopPrice = text(values.stop, symbol.priceScale);
    if (["LIMIT", "STOP_LOSS_LIMIT"].includes(type)) params.timeInForce = element("life").value;
    const begun = performance.now();
    const note = element("order-text");
    try {
      const order = await this.api.own("order.place", params);
      const took = (performance.now() - begun).toFixed(1);
      const status = order.status ? order.status.replaceAll("_", " ").toLowerCase() : "placed";
      const filled = order.executedQty && /[1-9]/.test(order.executedQty)
        ? `, ${short(order.executedQty)} filled` : "";
      note.textContent = `Order ${status}${filled}, answered in ${took} ms.`;
      this.say(note.textContent);
    } catch (error) {
      note.textContent = `Refused: ${error.message}`;
      this.fail(note.textContent);
    }
  }
}
