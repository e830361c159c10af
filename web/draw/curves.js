/** Curves over time: thin lines told apart by dashes, named at their ends. */

import { s } from "../dom.js";
import { count } from "../model/words.js";
import { roundAbove } from "../model/scale.js";

const LINE = 15;
export const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

/**
 * @param {{ series: { name: string, points: [number, number][], dash?: string, strong?: boolean, family?: string }[], x: [number, number], width: number, height: number,
 *   now?: number | null, left?: number, right?: number, ticks?: number[], times?: string[], step?: boolean }} curves
 *   `left` and `right` are what is left free for the numbers and the names, `times` what is written below each tick
 */
export function curves({ series, x: [x0, x1], width, height, now = null, left = 36, right = 140, ticks = [], times = [], step = true }) {
  const top = Math.max(1, ...series.flatMap(({ points }) => points.map(([, y]) => y)));
  const [upper, lower] = [10, height - (times.length ? 26 : 8)];
  const toX = (/** @type {number} */ t) => left + ((t - x0) / (x1 - x0 || 1)) * (width - left - right);
  const toY = (/** @type {number} */ value) => lower - (value / top) * (lower - upper);
  const every = roundAbove(top / Math.max(1, Math.floor((lower - upper) / 38)));
  const rows = [];
  for (let value = 0; value <= top; value += every) rows.push(value);
  const ends = series.map(({ name, points, dash = "", family }) => ({ name, value: at(points, now ?? x1), y: 0, dash, family }));
  place(ends, toY, upper, lower);
  return s("svg", { class: "curves", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": ends.map(({ name, value }) => `${name} ${count(value)}`).join(", ") },
    rows.map((value) => s("g", { class: "row" }, s("path", { class: "grid", d: `M${left},${toY(value)}H${width - right}` }), s("text", { class: "tick", x: left - 8, y: toY(value) + 4, "text-anchor": "end" }, count(value)))),
    ticks.map((t, place) => s("g", {}, s("path", { class: "grid", d: `M${toX(t)},${upper}V${lower}` }),
      times[place] && s("text", { class: "tick", x: toX(t), y: lower + 18, "text-anchor": "middle" }, times[place]))),
    series.map(({ points, dash = "", strong, family }) => s("path", { class: ["curve", strong && "strong", family && `family-${family}`].filter(Boolean).join(" "), d: line(points, toX, toY, step), "stroke-dasharray": dash || null })),
    // Where colours tell the curves apart, each name has a piece of its own.
    ends.map(({ name, value, y, dash, family }) => s("g", {},
      family && s("path", { class: `curve strong family-${family}`, d: `M${width - right + 8},${y}h20`, "stroke-dasharray": dash || null }),
      s("text", { class: "end", x: width - right + (family ? 34 : 10), y: y + 4 }, `${name} `, s("tspan", { class: "value" }, count(value))))));
}

/** @param {[number, number][]} points @param {(t: number) => number} toX @param {(value: number) => number} toY @param {boolean} step */
function line(points, toX, toY, step) {
  return points.map(([t, value], place) => {
    const [x, y] = [Math.round(toX(t) * 10) / 10, Math.round(toY(value) * 10) / 10];
    return place === 0 ? `M${x},${y}` : step ? `H${x}V${y}` : `L${x},${y}`;
  }).join("");
}

/** The value of a step function. @param {[number, number][]} points @param {number} t */
export function at(points, t) {
  let value = 0;
  for (const [when, one] of points) {
    if (when > t) break;
    value = one;
  }
  return value;
}

/** Names near the ends of their curves, none on another: in the order of the values, pushed apart. @param {{ value: number, y: number }[]} ends @param {(value: number) => number} toY @param {number} upper @param {number} lower */
function place(ends, toY, upper, lower) {
  const sorted = [...ends].sort((a, b) => b.value - a.value);
  sorted.forEach((one, index) => {
    one.y = Math.max(toY(one.value), index ? sorted[index - 1].y + LINE : upper);
  });
  // What was pushed out at the bottom comes back up, and takes the others along.
  for (let index = sorted.length - 1; index >= 0; index--) {
    const limit = index === sorted.length - 1 ? lower : sorted[index + 1].y - LINE;
    sorted[index].y = Math.min(sorted[index].y, limit);
  }
}
