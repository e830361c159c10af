/** Numbers, times and lists in words. Pure. */

/** "3.45 ms", "250 µs", "1.2 s". @param {number} ns */
export function time(ns) {
  if (ns === 0) return "0 ms";
  const units = /** @type {[number, string][]} */ ([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  const [size, unit] = units.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
  return `${short(ns / size)} ${unit}`;
}

/** A time of an address or a flag: nanoseconds, or with a unit. @param {string | undefined} text @returns {number | null} */
export function parseTime(text) {
  const found = /^(\d+(?:\.\d+)?)(ns|us|µs|ms|s)?$/.exec(text ?? "");
  if (!found) return null;
  const size = /** @type {Record<string, number>} */ ({ ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 })[found[2] ?? "ns"];
  return Math.round(Number(found[1]) * size);
}

/** The times of a flag's value as people write them: "6@17.181818ms" → "6@17.2 ms". @param {string} text */
export const readable = (text) => text.replace(/\d+(?:\.\d+)?(?:ns|us|µs|ms|s)\b/g, (one) => time(parseTime(one) ?? 0));

/** The same of microseconds. @param {number} us */
export const micros = (us) => time(Math.round(us) * 1000);

/** Three digits that matter, no trailing zeros. @param {number} value */
export function short(value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** "1,204". @param {number} value */
export const count = (value) => value.toLocaleString("en-GB");

/** "10,000", "1 million", "10¹²": short enough for an axis. @param {number} value a power of ten */
export function compact(value) {
  if (value < 1e6) return count(value);
  if (value < 1e9) return `${count(value / 1e6)} million`;
  return `10${[...String(Math.round(Math.log10(value)))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("")}`;
}

/** Digits within a text, grouped: "2 * 1000000" → "2 * 1,000,000". @param {string} text */
export const grouped = (text) => text.replace(/\d{4,}/g, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));

/** "1 member", "5 members". @param {number} value @param {string} noun @param {string} [plural] */
export const many = (value, noun, plural = `${noun}s`) => `${count(value)} ${value === 1 ? noun : plural}`;

/** "1, 2 and 5". @param {(string | number)[]} items */
export function list(items) {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** "0 to 7" for a run of ids, else the list. @param {number[]} ids */
export function ids(ids) {
  const straight = ids.every((id, place) => place === 0 || id === ids[place - 1] + 1);
  return straight && ids.length > 2 ? `${ids[0]} to ${ids.at(-1)}` : list(ids);
}

/** How long ago, for people: "3.2 s ago", "2 min ago". @param {number} us */
export function ago(us) {
  const seconds = us / 1e6;
  if (seconds < 60) return `${seconds.toFixed(1)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return `${Math.floor(seconds / 3600)} h ago`;
}

/** When more than one led or was inside: `two leaders from 3 ms to 11 ms`. @param {{ from: number, to: number | null, members?: unknown[] }} overlap @param {boolean} [excludes] */
export function together({ from, to, members = [] }, excludes = false) {
  return `${members.length > 2 ? members.length : "two"} ${excludes ? "members inside" : "leaders"} from ${time(from)} ${to === null ? "on" : `to ${time(to)}`}`;
}
