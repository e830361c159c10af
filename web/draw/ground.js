/** What lies below the arrows of a space-time diagram: the grid, partitions, folds, bands and life lines. */

import { s } from "../dom.js";
import { time, together } from "../model/words.js";

/**
 * @typedef {object} Picture everything of a diagram that has a place; made again when the run or the size changes
 * @property {import("../model/run.js").Run} run
 * @property {import("../model/scale.js").TimeScale} scale
 * @property {{ pitch: number, top: number, bottom: number, y(id: number): number }} lanes
 * @property {import("../model/layout.js").Stretch[]} stretches
 * @property {import("../model/layout.js").Arrow[]} arrows
 * @property {import("../model/run.js").Step[]} steps those that are shown
 * @property {number} until what begins later is not shown
 * @property {number} end where life lines end, in pixels
 * @property {boolean} compact
 * @property {boolean} strip whether a strip below the lanes tells who led
 */

/** The half height of a band. @param {Picture} picture */
export const bandHeight = ({ lanes, compact }) => Math.max(1.5, Math.min(compact ? 3.5 : 4.5, lanes.pitch * 0.2));

/** @param {Picture} picture @returns {SVGElement[]} */
export function drawGround(picture) {
  const { below, above } = bands(picture);
  const { lines, zigzags } = lifeLines(picture);
  return [...grounds(picture), ...folds(picture), ...below, ...lines, ...above, ...zigzags];
}

/** @param {Picture} picture @returns {SVGElement[]} */
function grounds({ run, scale, lanes, until, end, compact }) {
  const { partition = [], downtime = [], overlap = [], cuts = [] } = run.data.intervals ?? {};
  const [top, height] = [lanes.top, lanes.bottom - lanes.top];
  const place = (/** @type {number} */ from, /** @type {number | null} */ to) => {
    const x = scale.toX(from);
    return { x, width: Math.max(1, (to === null || to >= scale.end ? end : scale.toX(to)) - x) };
  };
  /** @type {SVGElement[]} */
  const found = [];
  for (const { from, to, groups } of partition.filter((/** @type {any} */ one) => one.from <= until)) {
    const { x, width } = place(from, to);
    found.push(s("g", { class: "partition" },
      s("rect", { class: "side", x, y: top, width, height }),
      s("path", { class: "edge", d: `M${x},${top}V${lanes.bottom}${to === null ? "" : `M${x + width},${top}V${lanes.bottom}`}` }),
      s("title", {}, `partition: ${sides(run, groups)}`)));
  }
  if (compact) for (const [from, to] of downtime) found.push(s("rect", { class: "downtime", y: top, height, ...place(from, to) }));
  for (const { from, to } of overlap.filter((/** @type {any} */ one) => one.from <= until && compact)) {
    found.push(s("rect", { class: "overlap", y: top, height, ...place(from, to) }));
  }
  for (const { from, to, a, b } of cuts.filter((/** @type {any} */ one) => one.from <= until)) found.push(cut(scale, lanes, from, to, a, b, run));
  return found;
}

/** "{1, 2} | {3}". @param {import("../model/run.js").Run} run @param {number[][]} groups */
const sides = (run, groups) => groups.map((ids) => `{${ids.map((id) => run.name(id)).join(", ")}}`).join(" | ");

/** The names of partitions, above them, and in sight as long as they are. @param {Picture} picture @param {Sight} sight @param {(text: string) => number} measure */
export function drawSides({ run, scale, lanes, until, end }, sight, measure) {
  /** @type {SVGElement[]} */
  const found = [];
  let free = -Infinity;
  for (const { from, to, groups } of run.data.intervals?.partition ?? []) {
    const text = sides(run, groups);
    const x = Math.max(scale.toX(from) + 5, sight.x0 + 12, free);
    if (from > until || x > Math.min(to === null ? end : scale.toX(to), sight.x1) - 20) continue;
    free = x + measure(text) + 12;
    found.push(s("text", { class: "sides", x, y: lanes.top - 6 }, text));
  }
  return found;
}

/** A link that is cut one way: a red line between the lanes with two bars, and an end where it is mended. @param {Picture["scale"]} scale @param {Picture["lanes"]} lanes @param {number} from @param {number | null} to @param {number} a @param {number} b @param {import("../model/run.js").Run} run */
function cut(scale, lanes, from, to, a, b, run) {
  const [y0, y1] = [lanes.y(a), lanes.y(b)];
  const [middle, way] = [(y0 + y1) / 2, Math.sign(y1 - y0)];
  const sign = (/** @type {number} */ x, /** @type {boolean} */ mended) =>
    `M${x},${y0 + way * 6}V${y1 - way * 6}M${x - 3},${y1 - way * 11}L${x},${y1 - way * 6}L${x + 3},${y1 - way * 11}` +
    (mended ? "" : `M${x - 5},${middle - 2}h10M${x - 5},${middle + 2}h10`);
  return s("g", { class: "cut" },
    s("path", { class: "edge", d: sign(scale.toX(from), false) }),
    to === null ? null : s("path", { class: "edge mended", d: sign(scale.toX(to), true) }),
    s("title", {}, `${run.name(a)} cannot reach ${run.name(b)} from ${time(from)}${to === null ? "" : ` to ${time(to)}`}`));
}

/** Long waits: a light column; the zigzag is on the life lines. @param {Picture} picture */
function folds({ scale, lanes }) {
  return scale.folds.map(({ x0, x1 }) => s("rect", { class: "fold", x: x0, width: x1 - x0, y: lanes.top, height: lanes.bottom - lanes.top }));
}

/** @param {Picture} picture */
function bands(picture) {
  const { run, scale, lanes, stretches, until, end } = picture;
  const half = bandHeight(picture);
  // A leader's band covers its life line; the others let it be seen.
  const found = { below: /** @type {SVGElement[]} */ ([]), above: /** @type {SVGElement[]} */ ([]) };
  for (const { member, state, from, to, term } of stretches) {
    if (state === "down" || from > until) continue;
    const x = scale.toX(from);
    const until_x = to === null ? end : Math.min(end, scale.toX(to));
    const width = Math.max(1, until_x - x);
    const y = lanes.y(member);
    if (state === "lease") {
      found.above.push(s("path", { class: "lease", d: `M${x},${y + half + 2}H${x + width}` }));
    } else {
      const words = /** @type {Record<string, string>} */ ({ paused: "is paused", inside: "is inside", together: "is inside beside another member" });
      const text = `${run.name(member)} ${words[state] ?? state}${term && run.data.leases ? ` in term ${term}` : ""}, ${time(from)} to ${to === null ? "the end" : time(to)}`;
      // Thin while a member waits, thick while it is inside.
      const high = state === "waits" ? half * 0.45 : state === "inside" || state === "together" ? half * 1.3 : half;
      found[state === "campaigns" ? "below" : "above"].push(s("rect", { class: `band ${state}`, x, y: y - high, width, height: 2 * high, rx: state === "leads" ? Math.min(half, 3) : 0 }, s("title", {}, text)));
    }
  }
  return found;
}

/** Solid while a member is up, dotted while it is down, with a zigzag across a fold. @param {Picture} picture */
function lifeLines({ run, scale, lanes, stretches, until, end }) {
  let [solid, dotted, gap] = ["", "", ""];
  for (const id of run.order) {
    const y = Math.round(lanes.y(id)) + 0.5;
    const down = stretches.filter((one) => one.member === id && one.state === "down" && one.from <= until).sort((a, b) => a.from - b.from);
    let x = -12;
    for (const { from, to } of down) {
      const x0 = from <= scale.start ? -12 : scale.toX(from);
      if (x0 > x) solid += `M${x},${y}H${x0}`;
      x = to === null ? end : scale.toX(to);
      dotted += `M${x0},${y}H${x}`;
    }
    if (x < end) solid += `M${x},${y}H${end}`;
    for (const { x: middle } of scale.folds) gap += zigzag(middle, y, Math.min(5, lanes.pitch * 0.2));
  }
  return {
    lines: [s("path", { class: "life", d: solid }), s("path", { class: "life down", d: dotted })],
    zigzags: [s("path", { class: "zigzag-ground", d: gap }), s("path", { class: "zigzag", d: gap })],
  };
}

/** @param {number} x @param {number} y @param {number} a */
const zigzag = (x, y, a) => `M${x - 8},${y}L${x - 5},${y - a}L${x},${y + a}L${x + 5},${y - a}L${x + 8},${y}`;

/** @typedef {{ x0: number, x1: number }} Sight what is in sight, in pixels */

/** The leaders over time and the gaps between them, or the members that were inside, in one strip below the lanes. @param {Picture} picture @param {Sight} sight @param {(text: string) => number} measure */
export function drawStrip({ run, scale, lanes, until, end }, sight, measure) {
  const { downtime = [], overlap = [] } = run.data.intervals ?? {};
  const { [run.excludes ? "inside" : "leader"]: holders = [] } = run.data.intervals ?? {};
  const y = lanes.bottom + 8;
  /** @type {SVGElement[]} */
  const found = [];
  const add = (/** @type {string} */ kind, /** @type {number} */ from, /** @type {number | null} */ to, /** @type {string[]} */ texts) => {
    if (from > until) return;
    // Only what is in sight, so that the text is too.
    const x = Math.max(scale.toX(from), sight.x0);
    const width = Math.min(to === null || to >= scale.end ? end : scale.toX(to), sight.x1) - x;
    if (width <= 0) return;
    const text = texts.find((one) => measure(one) + 12 < width);
    found.push(s("g", { class: `strip ${kind}` }, s("rect", { x, y, width, height: 12 }),
      text ? s("text", { x: kind === "leads" ? x + 7 : x + width / 2, y: y + 9.8, "text-anchor": kind === "leads" ? "start" : "middle" }, text) : null,
      s("title", {}, texts[0])));
  };
  // Where two members lead, the overlap is shown.
  const edge = (/** @type {number | null} */ to) => to ?? run.end;
  for (const { member, from, to } of holders) {
    const texts = [`${run.name(member)} ${run.excludes ? "is inside" : "leads"}`, run.name(member)];
    let start = from;
    for (const one of overlap.filter((/** @type {any} */ { from: begin, to: over }) => begin < edge(to) && edge(over) > from)) {
      if (one.from > start) add("leads", start, one.from, texts);
      start = edge(one.to);
    }
    if (start < edge(to) || (to === null && start === run.end && !overlap.length)) add("leads", start, to, texts);
  }
  for (const one of overlap) {
    const length = time((one.to ?? run.end) - one.from);
    add("overlap", one.from, one.to, [`${together(one, run.excludes)}: overlap ${length}`, `overlap ${length}`, length]);
  }
  for (const [from, to] of downtime) {
    const length = time((to ?? run.end) - from);
    add("downtime", from, to, [`no leader: downtime ${length}`, `downtime ${length}`, length]);
  }
  return found;
}

/** The names at the left, thinned out where lanes are close. @param {Picture} picture @param {string | null} selection */
export function drawNames({ run, lanes }, selection) {
  const every = lanes.pitch >= 12 ? 1 : Math.ceil(12 / lanes.pitch);
  const style = lanes.pitch < 18 ? { style: { "font-size": `${Math.max(11, Math.min(14, lanes.pitch * 0.8))}px` } } : {};
  return run.order.map((id, place) => {
    const y = lanes.y(id);
    const member = run.members.get(id);
    const chosen = selection === String(id);
    if (place % every && !chosen) return null;
    return s("g", { class: `name${member?.up === false ? " down" : ""}${chosen ? " chosen" : ""}`, "data-member": id, transform: `translate(0 ${y})` },
      s("text", { x: -23, y: lanes.pitch < 18 ? 4 : 4.5, "text-anchor": "end", ...style }, member?.witness ? `◇ ${run.name(id)}` : run.name(id)));
  }).filter((one) => one !== null);
}

/** The grid, and the axis below. @param {Picture} picture @param {Sight} sight @param {boolean} axis */
export function drawAxis({ scale, lanes, strip }, sight, axis) {
  const y = axisY({ lanes, strip });
  const ticks = scale.ticks(60, sight.x0, sight.x1);
  const apart = ticks.filter(({ x }) => !scale.folds.some((fold) => Math.abs(fold.x - x) < 38));
  const waits = scale.folds.filter(({ x }) => x > sight.x0 - 30 && x < sight.x1 + 30);
  return [
    s("path", { class: "grid", d: ticks.map(({ x }) => `M${x},${lanes.top - 4}V${lanes.bottom}`).join("") }),
    ...(axis ? apart.map(({ x, text }) => s("text", { class: "tick", x, y, "text-anchor": "middle" }, text)) : []),
    ...(axis ? waits.map(({ x, from, to }) => s("text", { class: "tick wait", x, y, "text-anchor": "middle" }, time(to - from))) : []),
  ];
}

/** @param {{ lanes: Picture["lanes"], strip: boolean }} picture */
const axisY = ({ lanes, strip }) => lanes.bottom + (strip ? 38 : 18);

/** The unit of the axis, at the left where it stays. @param {Picture} picture */
export const drawUnit = (picture) => s("text", { class: "tick", x: -23, y: axisY(picture), "text-anchor": "end" }, picture.scale.size(60).name);
