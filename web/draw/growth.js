/** How messages grow with members: both axes by powers of ten, so that n is a line and n² one that is twice as steep. */

import { s } from "../dom.js";
import { compact, count, many } from "../model/words.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [64, 24, 16, 40];

/**
 * @param {{ points: [number, number][], simulated_up_to: number }} growth members and messages, and how many messages are simulated here
 * @param {{ width: number, height: number }} size
 */
export function growthCurve({ points, simulated_up_to: limit }, { width, height }) {
  const [last, most] = /** @type {[number, number]} */ (points.at(-1));
  const [x, y] = [axis(points[0][0], last, LEFT, width - RIGHT), axis(Math.max(1, points[0][1]), most, height - BOTTOM, TOP)];
  const at = (/** @type {[number, number]} */ [n, messages]) => `${x.place(n).toFixed(1)},${y.place(Math.max(1, messages)).toFixed(1)}`;
  const level = y.place(limit);
  return s("svg", { class: "curves", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Messages by the formula: ${points.map(([n, messages]) => `${count(messages)} with ${many(n, "member")}`).join(", ")}` },
    y.tens.map((value) => s("g", { class: "row" }, s("path", { class: "grid", d: `M${LEFT},${y.place(value)}H${width - RIGHT}` }), s("text", { class: "tick", x: LEFT - 8, y: y.place(value) + 4, "text-anchor": "end" }, compact(value)))),
    x.tens.map((value) => s("g", { class: "row" }, s("path", { class: "grid", d: `M${x.place(value)},${TOP}V${height - BOTTOM}` }), s("text", { class: "tick", x: x.place(value), y: height - BOTTOM + 18, "text-anchor": "middle" }, compact(value)))),
    level > TOP && level < height - BOTTOM && s("g", {},
      s("path", { class: "limit", d: `M${LEFT},${level}H${width - RIGHT}` }),
      s("text", { class: "tick", x: LEFT + 8, y: level - 6 }, width < 600 ? "above: the formula" : `above ${count(limit)} messages: by the formula alone`)),
    s("path", { class: "curve strong", d: `M${points.map(at).join("L")}` }),
    s("circle", { class: "point", cx: x.place(last), cy: y.place(most), r: 4.5 }),
    s("text", { class: "tick", x: width - RIGHT, y: height - 4, "text-anchor": "end" }, "members"));
}

/** Where a value stands between two ends, by powers of ten, and which powers lie there; of many every second or third. @param {number} low @param {number} high @param {number} from @param {number} to */
function axis(low, high, from, to) {
  const [a, b] = [Math.log10(low), Math.log10(Math.max(high, low * 10))];
  const every = Math.ceil(((b - a) * 30) / Math.abs(to - from));
  const first = Math.ceil(a / every) * every;
  const tens = Array.from({ length: Math.max(0, Math.floor((b - first) / every) + 1) }, (_, place) => 10 ** (first + place * every));
  return { tens, place: (/** @type {number} */ value) => from + ((Math.log10(value) - a) / (b - a)) * (to - from) };
}
