// Exact decimals. A value is a BigInt of units of the last decimal; no digit goes through a float.

/** Returns the units of a decimal text, or null where it is none or has more decimals. */
export function units(text, decimals) {
  const found = /^(-?)(\d*)\.?(\d*)$/.exec(String(text).trim());
  if (!found || !(found[2] + found[3])) return null;
  const kept = found[3].slice(0, decimals);
  if (/[1-9]/.test(found[3].slice(decimals))) return null;
  const all = BigInt((found[2] || "0") + kept.padEnd(decimals, "0"));
  return found[1] ? -all : all;
}

/** Returns units as a text with all decimals. */
export function text(value, decimals) {
  const sign = value < 0n ? "-" : "";
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  return decimals ? `${sign}${whole}.${digits.slice(-decimals)}` : sign + whole;
}

/** Returns a decimal text without zeros behind its last digit, but with `least` decimals. */
export function short(decimal, least = 0) {
  const [whole, fraction = ""] = String(decimal).split(".");
  const kept = fraction.replace(/0+$/, "").padEnd(least, "0");
  return kept ? `${whole}.${kept}` : whole;
}

/** Returns how many decimals a step such as 0.01000000 needs. */
export function decimalsOf(step) {
  return short(step).split(".")[1]?.length ?? 0;
}

/** Returns a value rounded down to a multiple of a step. */
export const floor = (value, step) => value - (((value % step) + step) % step);

/** Returns a value rounded up to a multiple of a step. */
export const ceil = (value, step) => -floor(-value, step);

/** Returns nanoseconds as people read them: three digits and a unit. */
export function time(ns) {
  if (!(ns > 0)) return "0";
  const [size, unit] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"]
    : [1e9, "s"];
  const value = ns / size;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
}

/** Returns the time of day of milliseconds since 1970, here. */
export function clock(ms, withMs = false) {
  const at = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return withMs ? `${day}.${String(at.getMilliseconds()).padStart(3, "0")}` : day;
}
