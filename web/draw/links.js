/** What lies between members: links or the ring, cuts, and the line of a partition. Redrawn only when something of it changes. */

import { keyed, s, set } from "../dom.js";
import { along, way } from "../model/ring.js";

/**
 * @typedef {import("../model/ring.js").Place} Place
 * @typedef {import("../model/ring.js").Segment} Segment
 */

/** Above this many members links are drawn only for the member under the pointer. */
export const MESH_UP_TO = 12;

export class Links {
  constructor() {
    this.plain = s("path", { class: "link" });
    this.dotted = s("path", { class: "link is-dotted" });
    this.marks = s("path", { class: "ring-mark" });
    this.walls = s("g", { class: "walls" });
    this.cuts = s("g", { class: "cuts" });
    this.element = s("g", { class: "links" }, this.plain, this.dotted, this.marks, this.walls);
  }

  /**
   * @param {Map<string, Place>} places
   * @param {{ order: string[], topology: string, down: Set<string>, near: string | null, cuts: [string, string][], groups: string[][] | null, walls: Segment[] }} shown
   */
  draw(places, { order, topology, down, near, cuts, groups, walls }) {
    const group = new Map((groups ?? []).flatMap((ids, g) => ids.map((id) => [id, g])));
    const parted = (/** @type {string} */ a, /** @type {string} */ b) => group.get(a) !== group.get(b);
    const cutPairs = new Set(cuts.flatMap(([a, b]) => [`${a} ${b}`, `${b} ${a}`]));
    const pairs = topology === "ring" ? ringPairs(order) : meshPairs(order, near);
    const lines = { plain: "", dotted: "" };
    let marks = "";
    for (const [a, b] of pairs) {
      const [from, to] = [places.get(a), places.get(b)];
      if (!from || !to || parted(a, b) || cutPairs.has(`${a} ${b}`)) continue;
      const segment = way(from, to, 0, 2);
      lines[down.has(a) || down.has(b) ? "dotted" : "plain"] += line(segment);
      if (topology === "ring") marks += chevron(segment);
    }
    set(this.plain, { d: lines.plain || null });
    set(this.dotted, { d: lines.dotted || null });
    set(this.marks, { d: marks || null });
    keyed(this.walls, walls.map((wall, i) => ({ wall, i })), ({ i }) => i, () => s("path", { class: "wall" }), (path, { wall }) => set(path, { d: line(wall) }));
    this.drawCuts(places, cuts.filter(([a, b]) => !parted(a, b)));
  }

  /** Two bars across the link; one way: an arrow against them. @param {Map<string, Place>} places @param {[string, string][]} cuts */
  drawCuts(places, cuts) {
    const ways = new Set(cuts.map(([a, b]) => `${a} ${b}`));
    const drawn = cuts.filter(([a, b]) => !(ways.has(`${b} ${a}`) && a > b)).map(([a, b]) => ({ a, b, both: ways.has(`${b} ${a}`) }));
    keyed(this.cuts, drawn, ({ a, b, both }) => `${a} ${b} ${both}`,
      () => s("g", { class: "cut" }, s("path", { class: "link cut-link" }), s("path", { class: "cut-hit" }), s("path", { class: "cut-arrow" }), s("path", { class: "cut-bars" }), s("title", {})),
      (element, { a, b, both }) => {
        const [from, to] = [places.get(a), places.get(b)];
        if (!from || !to) return;
        set(element, { "data-from": a, "data-to": b, "data-both": both });
        const segment = way(from, to, 0, 2);
        const length = Math.hypot(segment.x2 - segment.x1, segment.y2 - segment.y1) || 1;
        const middle = along(segment, both ? 0.5 : 0.42);
        const turn = (Math.atan2(segment.y2 - segment.y1, segment.x2 - segment.x1) * 180) / Math.PI;
        const gap = Math.min(9, length / 6) / length;
        const at = both ? 0.5 : 0.42;
        const [link, hit, arrow, bars, title] = element.children;
        set(link, { d: line({ ...segment, ...end(along(segment, at - gap)) }) + line({ ...start(along(segment, at + gap)), ...end({ x: segment.x2, y: segment.y2 }) }) });
        const transform = `translate(${middle.x.toFixed(1)} ${middle.y.toFixed(1)}) rotate(${turn.toFixed(1)})`;
        set(hit, { d: "M-16,-16H16V16H-16Z", transform });
        set(bars, { d: "M-3.5,-8V8M3.5,-8V8", transform });
        set(arrow, { d: both ? null : "M-26,0H-10M-15,-4.5L-9,0L-15,4.5", transform });
        set(title, { text: both ? `The link between ${a} and ${b} is cut. Click to mend it.` : `Nothing from ${a} reaches ${b}. Click to mend it.` });
      });
  }
}

/** @param {string[]} order @param {string | null} near @returns {[string, string][]} */
function meshPairs(order, near) {
  if (order.length > MESH_UP_TO) return near ? order.filter((id) => id !== near).map((id) => [near, id]) : [];
  return order.flatMap((a, i) => order.slice(i + 1).map((b) => /** @type {[string, string]} */ ([a, b])));
}

/** @param {string[]} order @returns {[string, string][]} */
function ringPairs(order) {
  return order.length < 2 ? [] : order.map((id, i) => [id, order[(i + 1) % order.length]]);
}

/** Every link that can be seen, for labels to keep clear of. @param {Map<string, Place>} places @param {string[]} order @param {string} topology @returns {Segment[]} */
export function visibleLinks(places, order, topology) {
  const pairs = topology !== "ring" && order.length <= MESH_UP_TO ? meshPairs(order, null) : ringPairs(order);
  return pairs.flatMap(([a, b]) => {
    const [from, to] = [places.get(a), places.get(b)];
    return from && to ? [way(from, to)] : [];
  });
}

/** @param {Segment} segment */
export const line = ({ x1, y1, x2, y2 }) => `M${x1.toFixed(1)},${y1.toFixed(1)}L${x2.toFixed(1)},${y2.toFixed(1)}`;

/** @param {{ x: number, y: number }} point */
const start = ({ x, y }) => ({ x1: x, y1: y });

/** @param {{ x: number, y: number }} point */
const end = ({ x, y }) => ({ x2: x, y2: y });

/** A direction mark in the middle of a way. @param {Segment} segment */
function chevron(segment) {
  const { x, y } = along(segment, 0.5);
  const angle = Math.atan2(segment.y2 - segment.y1, segment.x2 - segment.x1);
  const wing = (/** @type {number} */ side) => {
    const turned = angle + Math.PI + side * 0.6;
    return `${(x + 3 * Math.cos(angle) + 6 * Math.cos(turned)).toFixed(1)},${(y + 3 * Math.sin(angle) + 6 * Math.sin(turned)).toFixed(1)}`;
  };
  return `M${wing(1)}L${(x + 3 * Math.cos(angle)).toFixed(1)},${(y + 3 * Math.sin(angle)).toFixed(1)}L${wing(-1)}`;
}
