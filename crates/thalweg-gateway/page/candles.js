// Candles and volume of a symbol. Floats are for drawing only; the texts are the server's.

import { short, clock } from "./decimal.js";
import { get } from "./connection.js";
import { Plot, colour, steps } from "./plot.js";

const KEPT = 500;
const AXIS = 66;
const FOOT = 18;

export class Candles {
  constructor(streams) {
    this.streams = streams;
    this.rows = [];
    this.name = null;
    this.select = document.getElementById("interval");
    this.legend = document.getElementById("candle-text");
    const host = document.getElementById("candle-plot");
    this.plot = new Plot(host, (...to) => this.draw(...to), () => this.shown().length);
    this.label = host.querySelector("canvas");
    this.select.addEventListener("change", () => this.follow(this.symbol));
  }

  follow(symbol) {
    this.symbol = symbol;
    if (this.name) this.streams.leave(this.name);
    this.name = `${symbol.name.toLowerCase()}@kline_${this.select.value}`;
    const { name } = this;
    this.rows = [];
    const begin = async () => {
      const params = { symbol: symbol.name, interval: this.select.value, limit: KEPT };
      const rows = await get("/api/v3/klines", params).catch(() => []);
      if (name !== this.name) return;
      const newer = this.rows.filter((row) => row.at > (rows.at(-1)?.[0] ?? 0));
      this.rows = rows.map(([at, o, h, l, c, v]) => ({ at, o, h, l, c, v })).concat(newer);
      this.plot.redraw();
    };
    this.streams.follow(name, ({ k }) => this.take(k), begin);
    this.plot.redraw();
  }

  take({ t: at, o, h, l, c, v }) {
    if (this.rows.at(-1)?.at === at) this.rows.pop();
    this.rows.push({ at, o, h, l, c, v });
    if (this.rows.length > KEPT) this.rows.shift();
    this.plot.redraw();
  }

  shown() {
    const width = this.plot ? this.plot.host.clientWidth - AXIS : 0;
    return this.rows.slice(-Math.max(1, Math.floor(width / 7)));
  }

  draw(context, width, height) {
    const rows = this.shown();
    const { plot } = this;
    if (!rows.length) {
      context.fillStyle = colour("dim");
      context.fillText("no trades yet", 8, 14);
      return;
    }
    const [right, bottom] = [width - AXIS, height - FOOT];
    const volumeTop = bottom - (bottom * 0.2);
    let high = Math.max(...rows.map((row) => +row.h));
    let low = Math.min(...rows.map((row) => +row.l));
    const room = (high - low || high * 0.001 || 1) * 0.06;
    [high, low] = [high + room, low - room];
    const y = (price) => ((high - price) / (high - low)) * (volumeTop - 6) + 2;
    [plot.step, plot.left] = [7, right - rows.length * 7];
    this.axis(context, { low, high, y, right, rows, bottom });
    const most = Math.max(...rows.map((row) => +row.v)) || 1;
    rows.forEach((row, at) => {
      const x = plot.left + at * 7 + 3.5;
      const rises = +row.c >= +row.o;
      context.fillStyle = context.strokeStyle = colour(rises ? "buy" : "sell");
      context.globalAlpha = 0.35;
      const tall = ((bottom - volumeTop) * row.v) / most;
      context.fillRect(x - 2.5, bottom - tall, 5, tall);
      context.globalAlpha = 1;
      context.beginPath();
      context.moveTo(x, y(row.h));
      context.lineTo(x, y(row.l));
      context.stroke();
      const [top, end] = [y(Math.max(row.o, row.c)), y(Math.min(row.o, row.c))];
      // A rising candle is hollow, so that it is known without its colour.
      if (rises) {
        context.fillStyle = colour("panel");
        context.fillRect(x - 2.5, top, 5, Math.max(1, end - top));
        context.strokeRect(x - 2.5, top, 5, Math.max(1, end - top));
      } else context.fillRect(x - 3, top, 6, Math.max(1, end - top));
    });
    this.say(context, rows, { y, right, bottom });
  }

  axis(context, { low, high, y, right, rows, bottom }) {
    context.fillStyle = colour("dim");
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    for (const price of steps(low, high, 6)) {
      const at = Math.round(y(price)) + 0.5;
      context.beginPath();
      context.moveTo(0, at);
      context.lineTo(right, at);
      context.stroke();
      context.fillText(price.toFixed(this.symbol.priceDecimals), right + 6, at);
    }
    const every = Math.max(1, Math.ceil(80 / 7));
    rows.forEach((row, at) => {
      const number = Math.round(row.at / this.length());
      const x = this.plot.left + at * 7;
      if (number % every || x < 20 || x > right - 40) return;
      const day = new Date(row.at);
      const text = this.length() >= 86_400_000 ? `${day.getMonth() + 1}-${day.getDate()}`
        : clock(row.at).slice(0, this.length() < 60_000 ? 8 : 5);
      context.fillText(text, x - 12, bottom + 10);
    });
  }

  length() {
    const [, count, unit] = /(\d+)(\w)/.exec(this.select.value);
    return count * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[unit];
  }

  /** Writes the candle at the cursor, or else the last, and marks its price. */
  say(context, rows, { y, right, bottom }) {
    const { cursor } = this.plot;
    const row = rows.at(-1 - Math.min(cursor ?? 0, rows.length - 1));
    if (cursor !== null) {
      const x = this.plot.left + (rows.length - 1 - cursor) * 7 + 3.5;
      context.strokeStyle = colour("dim");
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, bottom);
      context.stroke();
    }
    const last = rows.at(-1);
    const at = y(last.c);
    context.fillStyle = colour(+last.c >= +last.o ? "buy" : "sell");
    context.fillRect(right, at - 8, AXIS, 16);
    context.fillStyle = colour("panel");
    context.fillText(short(last.c, this.symbol.priceDecimals), right + 6, at);
    const number = (text) => short(text, this.symbol.priceDecimals);
    const sign = +row.c >= +row.o ? "▲" : "▼";
    const at24 = clock(row.at).slice(0, this.length() < 60_000 ? 8 : 5);
    const said = `${at24} O ${number(row.o)} H ${number(row.h)} L ${number(row.l)} `
      + `C ${number(row.c)} ${sign} V ${short(row.v)}`;
    this.legend.textContent = said;
    this.label.setAttribute("aria-label", `Candles of ${this.select.value}. ${said}`);
  }
}
