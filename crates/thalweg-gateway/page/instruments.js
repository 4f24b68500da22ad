// Where the time of the exchange's commands goes: the stream thalweg@instruments, kept for minutes.

import { time, clock } from "./decimal.js";
import { Plot, colour, steps, striped } from "./plot.js";

const KEPT = 600;
const AXIS = 62;
const FOOT = 18;
const element = (id) => document.getElementById(id);

/** Space over a drawing for what its lines are. */
const HEAD = 32;

/** Parts in the server's order: names to read, colours, and whether commands wait there. */
const PARTS = [
  ["waits for its turn", "part-1", "turn", true],
  ["risk check", "part-2", "risk"],
  ["matching", "part-3", "match"],
  ["settlement", "part-4", "settle"],
  ["waits for the disk", "part-5", "disk", true],
  ["publishing", "part-6", "publish"],
];
const isWait = (at) => Boolean(PARTS[at][3]);
const LINES = [
  ["p50", (one) => one.total.p50, "part-3", []],
  ["p99", (one) => one.total.p99, "part-5", []],
  ["slowest", (one) => one.total.max, "sell", [2, 3]],
  ["commit p99", (one) => one.commit.p99, "accent", [6, 3]],
];

export class Instruments {
  constructor(streams) {
    this.moments = [];
    this.name = "thalweg@instruments";
    const count = () => this.shown().length;
    this.stages = new Plot(element("stage-plot"), (...to) => this.drawStages(...to), count);
    this.tails = new Plot(element("tail-plot"), (...to) => this.drawTails(...to), count);
    element("span").addEventListener("change", () => this.show());
    this.build();
    streams.follow(this.name, (moment) => this.take(moment));
    this.said = element("instruments-text");
    setTimeout(() => {
      if (!this.moments.length) {
        this.said.textContent = "No figures have come: gateway.instruments may be off.";
      }
    }, 5_000);
  }

  build() {
    const rows = PARTS.map(([text, name], at) => {
      const made = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const swatch = document.createElement("span");
      swatch.className = `swatch ${name}${isWait(at) ? " waits" : ""}`;
      head.append(swatch, text);
      made.append(head);
      for (let cell = 0; cell < 3; cell += 1) made.insertCell();
      const bar = document.createElement("span");
      bar.className = `bar ${name}${isWait(at) ? " waits" : ""}`;
      const share = document.createElement("span");
      made.cells[3].append(bar, share);
      return made;
    });
    element("parts").tBodies[0].replaceChildren(...rows);
    this.rows = rows;
  }

  take(moment) {
    this.moments.push(moment);
    if (this.moments.length > KEPT) this.moments.shift();
    if (!document.hidden) this.show();
  }

  /** Returns the moments that are shown, oldest first. */
  shown() {
    return this.moments.slice(-element("span").value);
  }

  show() {
    this.stages.redraw();
    this.tails.redraw();
    const now = this.moments.at(-1);
    if (!now) return;
    this.said.textContent = "";
    this.showFigures(now);
    this.showTail(now);
    const newest = now.parts.map((part, at) => `${PARTS[at][0]} ${time(part.mean)}`).join(", ");
    element("stage-plot").firstElementChild.setAttribute("aria-label",
      `Mean time by stage; now ${newest}`);
    const lines = LINES.map(([name, of]) => `${name} ${time(of(now))}`).join(", ");
    element("tail-plot").firstElementChild.setAttribute("aria-label", `Now ${lines}`);
  }

  showFigures(now) {
    const seconds = now.elapsed / 1e9;
    const busy = now.parts.filter((_, at) => !isWait(at))
      .reduce((sum, part) => sum + part.mean, 0) * now.commands / now.elapsed;
    const fill = now.inFlight / now.capacity;
    const figures = [
      ["commands", `${Math.round(now.commands / seconds)}/s`],
      ["p50", time(now.total.p50)],
      ["p99", time(now.total.p99)],
      ["slowest", time(now.total.max)],
      ["commit p50", time(now.commit.p50)],
      ["commit p99", time(now.commit.p99)],
      ["commits", `${Math.round(now.commit.count / seconds)}/s × ${now.commitCommands.toFixed(1)}`],
      ["busy", `${(100 * busy).toFixed(1)} %`],
      ["queue", `${now.inFlight} / ${now.capacity}`, fill],
      ["to be read", `${(now.outBytes / 1024).toFixed(0)} KiB`],
      ["sessions", String(now.sessions)],
      ["timed", `${now.total.count}/s`],
    ];
    const list = element("figures");
    if (list.children.length !== figures.length) {
      list.replaceChildren(...figures.map(([name]) => {
        const pair = document.createElement("div");
        const [term, value] = ["dt", "dd"].map((tag) => document.createElement(tag));
        term.textContent = name;
        pair.append(term, value);
        return pair;
      }));
    }
    figures.forEach(([, text, part], at) => {
      const pair = list.children[at];
      pair.lastChild.textContent = text;
      if (part !== undefined) {
        pair.className = "gauge";
        pair.style.setProperty("--part", `${100 * part}%`);
      }
    });
  }

  showTail(now) {
    const { tail, slowest } = now;
    this.rows.forEach((row, at) => {
      row.cells[1].textContent = now.parts[at].count ? time(now.parts[at].mean) : "–";
      row.cells[2].textContent = tail ? time(tail.parts[at]) : "–";
      const share = tail ? (100 * tail.parts[at]) / tail.total : 0;
      row.cells[3].lastChild.textContent = tail ? `${share.toFixed(0)} %` : "–";
      row.cells[3].firstChild.style.setProperty("--part", `${share}%`);
    });
    const text = element("slowest");
    if (!slowest) {
      text.textContent = "";
      return;
    }
    const most = slowest.parts.indexOf(Math.max(...slowest.parts));
    text.textContent = `p99 ${time(tail.total)} (mean of the ${tail.count} above it). `
      + `Slowest: command ${slowest.command} (${slowest.kind}), ${time(slowest.total)}; `
      + `${time(slowest.parts[most])} of that: ${PARTS[most][0]}.`;
  }

  /** Draws the axis of times, and returns how a time becomes a height. */
  scale(context, { low, high, right, bottom, isLog }) {
    const of = (ns) => (isLog ? Math.log10(Math.max(ns, low)) : ns);
    const [from, to] = [of(low), of(high)];
    const y = (ns) => bottom - ((of(ns) - from) / (to - from)) * (bottom - HEAD - 6);
    const marks = isLog ? [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10]
      .filter((at) => at >= low && at <= high) : steps(low, high, 4);
    context.strokeStyle = colour("line");
    context.fillStyle = colour("dim");
    context.lineWidth = 1;
    for (const at of marks) {
      const height = Math.round(y(at)) + 0.5;
      context.beginPath();
      context.moveTo(0, height);
      context.lineTo(right, height);
      context.stroke();
      context.fillText(time(at), right + 6, height);
    }
    return y;
  }

  /** Places the moments from the right end, writes times, and returns their x. */
  places(context, plot, right, bottom) {
    const shown = this.shown();
    plot.step = right / Number(element("span").value);
    plot.left = right - shown.length * plot.step;
    context.fillStyle = colour("dim");
    const every = { 60: 15, 180: 60, 600: 120 }[element("span").value];
    shown.forEach((moment, at) => {
      const x = plot.left + at * plot.step;
      if (Math.floor(moment.E / 1e3) % every || x < 30 || x > right - 30) return;
      context.fillText(clock(moment.E), x - 26, bottom + 10);
    });
    return { shown, x: (at) => plot.left + (at + 0.5) * plot.step };
  }

  cursor(context, plot, shown, bottom) {
    if (plot.cursor === null) return shown.at(-1);
    const at = shown.length - 1 - Math.min(plot.cursor, shown.length - 1);
    const x = plot.left + (at + 0.5) * plot.step;
    context.strokeStyle = colour("dim");
    context.beginPath();
    context.moveTo(x, HEAD);
    context.lineTo(x, bottom);
    context.stroke();
    return shown[at];
  }

  drawStages(context, width, height) {
    const [right, bottom] = [width - AXIS, height - FOOT];
    const { shown, x } = this.places(context, this.stages, right, bottom);
    if (!shown.length) return;
    const sums = shown.map((one) => one.parts.reduce((sum, part) => sum + part.mean, 0));
    // One second that is far slower than the others does not flatten them: it is cut.
    const sorted = [...sums].sort((a, b) => a - b);
    const usual = sorted[Math.floor(sorted.length * 0.95)] * 1.5;
    const high = Math.max(1_000, Math.min(sorted.at(-1), usual) * 1.1);
    const y = this.scale(context, { low: 0, high, right, bottom });
    const below = shown.map(() => 0);
    const thick = Math.max(1, this.stages.step);
    PARTS.forEach(([, name], part) => {
      context.fillStyle = isWait(part) ? striped(context, name) : colour(name);
      shown.forEach((moment, at) => {
        const from = Math.min(below[at], high);
        below[at] += moment.parts[part].mean;
        const to = Math.min(below[at], high);
        if (to > from) context.fillRect(x(at) - thick / 2, y(to), thick + 0.3, y(from) - y(to));
      });
    });
    const at = this.cursor(context, this.stages, shown, bottom);
    this.legend(context, at, PARTS.map(([, name, text], part) => [
      text, time(at.parts[part].mean), name, isWait(part)]), width);
  }

  drawTails(context, width, height) {
    const [right, bottom] = [width - AXIS, height - FOOT];
    const { shown, x } = this.places(context, this.tails, right, bottom);
    if (!shown.length) return;
    const values = shown.flatMap((one) => LINES.map(([, of]) => of(one))).filter((ns) => ns > 0);
    const low = 10 ** Math.floor(Math.log10(Math.min(1e5, ...values)));
    const high = 10 ** Math.ceil(Math.log10(Math.max(1e6, ...values) * 1.01));
    const y = this.scale(context, { low, high, right, bottom, isLog: true });
    context.lineWidth = 1.5;
    for (const [, of, name, dashes] of LINES) {
      context.strokeStyle = colour(name);
      context.setLineDash(dashes);
      context.beginPath();
      let isDrawn = false;
      shown.forEach((moment, at) => {
        if (!of(moment)) { isDrawn = false; return; }
        context[isDrawn ? "lineTo" : "moveTo"](x(at), y(of(moment)));
        isDrawn = true;
      });
      context.stroke();
    }
    context.setLineDash([]);
    const at = this.cursor(context, this.tails, shown, bottom);
    this.legend(context, at, LINES.map(([text, of, name, dashes]) => [
      text, time(of(at)), name, false, dashes]), width);
  }

  /** Writes names with values of a moment above a drawing: the cursor's, or else the last. */
  legend(context, moment, entries, width) {
    const wide = Math.min(150, width / Math.ceil(entries.length / 2));
    entries.forEach(([text, value, name, waits, dashes], at) => {
      const x = 2 + wide * Math.floor(at / 2);
      const y = 8 + 14 * (at % 2);
      if (dashes) {
        context.strokeStyle = colour(name);
        context.lineWidth = 1.5;
        context.setLineDash(dashes);
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + 14, y);
        context.stroke();
        context.setLineDash([]);
      } else {
        context.fillStyle = waits ? striped(context, name) : colour(name);
        context.fillRect(x, y - 5, 14, 9);
      }
      context.fillStyle = colour("text");
      context.fillText(`${text} ${value}`, x + 18, y);
    });
    context.fillStyle = colour("dim");
    const at = clock(moment.E);
    if (wide * Math.ceil(entries.length / 2) + 60 < width) context.fillText(at, width - 58, 8);
  }
}
