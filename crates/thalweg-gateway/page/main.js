// The page: one symbol, its market by streams, the user by the WebSocket API.

import { Book } from "./book.js";
import { Candles } from "./candles.js";
import { Api, Streams, get } from "./connection.js";
import { clock, decimalsOf, short, time, units } from "./decimal.js";
import { Form } from "./form.js";
import { Instruments } from "./instruments.js";
import { Ladder } from "./ladder.js";
import { Orders } from "./orders.js";
import { recolour } from "./plot.js";
import { Tape } from "./tape.js";

const element = (id) => document.getElementById(id);
const symbols = new Map();
let symbol = null;
let book = null;

/** Says something to those who hear the page, at once if it failed. */
const tell = (id) => (text) => { element(id).textContent = text; };
const [say, fail] = [tell("said"), tell("failed")];

const streams = new Streams(() => showLinks());
const orders = new Orders({ changed: () => ordersChanged(), say, fail });
const api = new Api(() => showLinks(), (event) => orders.take(event), () => orders.logOn());
orders.api = api;
const best = (side) => {
  const prices = [...(side === "BUY" ? book.asks : book.bids).keys()];
  const [first] = prices.sort((one, other) => (side === "BUY" ? one - other : other - one));
  return first;
};
const form = new Form({ api, orders, best, say, fail });
const ladder = new Ladder((price, quantity) => {
  form.fill(price, quantity);
  say(`Price ${price}.`);
});
const tape = new Tape(streams, (price, isUp) => {
  const last = element("last");
  last.textContent = `${isUp ? "▲" : "▼"} ${price}`;
  last.className = `last number ${isUp ? "buy" : "sell"}`;
  document.title = `${price} ${symbol.name} – Thalweg`;
});
const candles = new Candles(streams);
const instruments = new Instruments(streams);

function ordersChanged() {
  ladder.mark([...orders.open.values()]);
  form.allow(api.state === "live" && orders.isOn && Boolean(orders.canTrade));
}

// Connections ---------------------------------------------------------------------------------

function showLinks() {
  const names = [["market", streams], ["orders", api]];
  const signs = { live: "●", stale: "◐", closed: "○", connecting: "◌" };
  const texts = names.map(([name, link]) => {
    const took = link.state === "live" && link.roundTrip !== null
      ? ` ${time(link.roundTrip * 1e6)}` : ` ${link.state}`;
    return `${signs[link.state]} ${name}${took}`;
  });
  element("links").textContent = texts.join("  ");
  showBanner();
  form.allow(api.state === "live" && orders.isOn && Boolean(orders.canTrade));
}

/** Shows which connection is silent or lost; its alert is said once a change. */
function showBanner() {
  const away = [["market data", streams], ["own orders", api]]
    .filter(([, link]) => link.state === "stale" || link.state === "closed");
  const banner = element("banner");
  document.body.classList.toggle("stale", away.some(([, link]) => link === streams));
  banner.hidden = !away.length;
  if (!away.length) {
    banner.textContent = "";
    return;
  }
  const said = away.map(([name, link]) => {
    const ago = performance.now() - link.heard;
    const since = clock(Date.now() - ago);
    return link.state === "closed"
      ? `${name}: the connection was lost at ${since}, it is tried again (attempt ${link.attempts})`
      : `${name}: nothing has come since ${since}`;
  });
  const text = `⚠ Stale. ${said.join("; ")}.`;
  if (banner.textContent !== text) banner.textContent = text;
}
setInterval(showLinks, 1_000);

// The symbol ----------------------------------------------------------------------------------

/** Reads the filters of a symbol: scales are decimals of the server's texts. */
function read(info) {
  const filter = (type) => info.filters.find((one) => one.filterType === type);
  const [price, size] = [filter("PRICE_FILTER").tickSize, filter("LOT_SIZE").stepSize];
  const decimals = (text) => text.split(".")[1]?.length ?? 0;
  return {
    name: info.symbol,
    base: info.baseAsset,
    quote: info.quoteAsset,
    priceScale: decimals(price),
    priceDecimals: decimalsOf(price),
    tick: units(price, decimals(price)),
    sizeScale: decimals(size),
    sizeDecimals: decimalsOf(size),
    step: units(size, decimals(size)),
    quoteScale: info.quoteAssetPrecision,
  };
}

function follow(name) {
  if (symbol) {
    const old = symbol.name.toLowerCase();
    streams.leave(`${old}@depth@100ms`);
    streams.leave(`${old}@ticker`);
  }
  symbol = symbols.get(name) ?? [...symbols.values()][0];
  element("symbol").value = symbol.name;
  if (location.hash.slice(1) !== symbol.name) history.replaceState(null, "", `#${symbol.name}`);
  const lower = symbol.name.toLowerCase();
  element("last").textContent = "";
  const load = () => get("/api/v3/depth", { symbol: symbol.name, limit: 1000 });
  book = new Book(load, () => ladder.ask());
  const own = book;
  ladder.follow(symbol, book);
  form.follow(symbol);
  orders.follow(symbol);
  candles.follow(symbol);
  tape.follow(symbol);
  streams.follow(`${lower}@depth@100ms`, (event) => own.take(event), () => {
    own.begin();
    own.fetch();
  });
  streams.follow(`${lower}@ticker`, showDay);
}

function showDay(day) {
  const number = (text) => short(text, symbol.priceDecimals);
  const rises = !day.p.startsWith("-");
  const sign = rises ? "▲ +" : "▼ ";
  const facts = [["24 h", `${sign}${day.P} %`], ["high", number(day.h)], ["low", number(day.l)],
    ["volume", `${short(day.v)} ${symbol.base}`]];
  element("day").replaceChildren(...facts.map(([name, text], at) => {
    const pair = document.createElement("div");
    const [term, value] = ["dt", "dd"].map((tag) => document.createElement(tag));
    [term.textContent, value.textContent] = [name, text];
    if (at === 0) value.className = rises ? "buy" : "sell";
    pair.append(term, value);
    return pair;
  }));
}

async function begin() {
  let info = null;
  while (!info) {
    info = await get("/api/v3/exchangeInfo").catch(() => null);
    if (!info) await new Promise((resume) => setTimeout(resume, 2_000));
  }
  for (const one of info.symbols) symbols.set(one.symbol, read(one));
  if (!symbols.size) {
    fail("The exchange has no symbols.");
    return;
  }
  element("symbol").replaceChildren(...[...symbols.keys()].map((name) => new Option(name)));
  element("symbol").addEventListener("change", () => follow(element("symbol").value));
  addEventListener("hashchange", () => {
    const name = location.hash.slice(1);
    if (symbols.has(name) && name !== symbol.name) follow(name);
  });
  follow(location.hash.slice(1));
}

// Theme and keys ------------------------------------------------------------------------------

const THEMES = ["system", "dark", "light"];
function showTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  element("theme").textContent = { system: "◐ System", dark: "● Dark", light: "○ Light" }[theme];
  element("theme").setAttribute("aria-label", `Colours: ${theme}`);
  sessionStorage.setItem("thalweg theme", theme);
  recolour();
}
let theme = sessionStorage.getItem("thalweg theme") ?? "system";
showTheme(theme);
element("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  showTheme(theme);
});

// The hash of the page is the symbol: links to its parts do not change it.
document.querySelectorAll("a[href^='#']").forEach((link) => {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const part = document.querySelector(link.getAttribute("href"));
    part.scrollIntoView();
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  });
});

const KEYS = {
  b: () => form.start("BUY"),
  s: () => form.start("SELL"),
  o: () => ladder.focus(),
  x: () => (element("open").querySelector("button") ?? element("orders")).focus(),
  c: () => element("candle-plot").focus(),
  i: () => element("stage-plot").focus(),
  "/": () => element("symbol").focus(),
  k: () => element("api-key").focus(),
  "?": () => element("keys").showModal(),
};
element("help").addEventListener("click", () => element("keys").showModal());
addEventListener("keydown", (event) => {
  const isText = event.target.closest("input:not([type=radio]):not([type=checkbox]), select, dialog");
  const isChord = event.ctrlKey || event.metaKey || event.altKey;
  if (isText || isChord || !element("letters").checked || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

begin();

/** What the test of the page looks at. */
export const state = { streams, api, orders, instruments, get book() { return book; } };
