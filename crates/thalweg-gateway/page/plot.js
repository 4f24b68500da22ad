// What the drawings share: a canvas with the size of its place, colours of the theme, a cursor that
// the mouse and the arrow keys move, steps of an axis.

const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);
let known = new Map();

/** Returns a colour of the style sheet by its name, in the theme that is on. */
export function colour(name) {
  if (!known.has(name)) {
    probe.style.color = `var(--${name})`;
    known.set(name, getComputedStyle(probe).color);
  }
  return known.get(name);
}

const plots = new Set();

/** Draws all anew, in other colours. */
export function recolour() {
  known = new Map();
  plots.forEach((plot) => plot.redraw());
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

export const FONT = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

export class Plot {
  /** `draw(context, width, height)` draws; `count()` is how many places the cursor has. */
  constructor(host, draw, count) {
    this.host = host;
    this.canvas = host.querySelector("canvas");
    this.draw = draw;
    this.count = count;
    /** The place of the cursor from the right end, or null. */
    this.cursor = null;
    /** Where the drawing has its places: the left end, and the width of one. */
    this.left = 0;
    this.step = 1;
    this.isAsked = false;
    plots.add(this);
    new ResizeObserver(() => this.redraw()).observe(host);
    host.addEventListener("pointermove", (event) => {
      const at = Math.floor((event.offsetX - this.left) / this.step);
      this.move(this.count() - 1 - at);
    });
    host.addEventListener("pointerleave", () => this.move(null));
    host.addEventListener("blur", () => this.move(null));
    host.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: 1, ArrowRight: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (event.key === "Escape") this.move(null);
      if (!by) return;
      event.preventDefault();
      this.move((this.cursor ?? -1) + by);
    });
  }

  move(cursor) {
    const last = this.count() - 1;
    this.cursor = cursor === null || last < 0 ? null : Math.max(0, Math.min(last, cursor));
    this.redraw();
  }

  redraw() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      const { canvas, host } = this;
      const [width, height] = [host.clientWidth, host.clientHeight];
      const ratio = devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = FONT;
      context.textBaseline = "middle";
      if (width > 40 && height > 40) this.draw(context, width, height);
    });
  }
}

/** Returns some round values between two. */
export function steps(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = power * [1, 2, 5, 10].find((by) => by * power >= rough);
  const found = [];
  for (let value = Math.ceil(low / size) * size; value <= high; value += size) found.push(value);
  return found;
}

/** Returns a fill with stripes: what waits is striped, what is served is not. */
export function striped(context, name) {
  const tile = document.createElement("canvas");
  tile.width = 6;
  tile.height = 6;
  const on = tile.getContext("2d");
  on.globalAlpha = 0.35;
  on.fillStyle = colour(name);
  on.fillRect(0, 0, 6, 6);
  on.globalAlpha = 1;
  on.strokeStyle = colour(name);
  on.lineWidth = 1.5;
  for (const by of [-6, 0, 6]) {
    on.beginPath();
    on.moveTo(by - 1, 7);
    on.lineTo(by + 7, -1);
    on.stroke();
  }
  return context.createPattern(tile, "repeat");
}
