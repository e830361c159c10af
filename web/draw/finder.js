/** What lies under a pointer: a grid of cells over everything that can be selected. Arrows are 12 px wide to it. */

import { polyline, toSegment } from "../model/layout.js";
import { ROOM, signOf } from "./marks.js";

const CELL = 32;
const REACH = 6;
/** In px. An arrow that is longer crosses too many cells, and is looked at wherever the pointer is. */
const LONGEST = 16_384;

/** @typedef {{ name: string, a: { x: number, y: number }, b: { x: number, y: number }, reach: number, bonus: number }} Thing */

export class Finder {
  /** @param {import("./ground.js").Picture} picture */
  constructor(picture) {
    this.picture = picture;
    /** @type {Map<number, Thing[]>} */
    this.cells = new Map();
    /** @type {Thing[]} */
    this.long = [];
    const { scale, lanes, arrows, steps } = picture;
    for (const arrow of arrows) {
      const points = polyline(arrow);
      for (let k = 0; k + 1 < points.length; k++) this.add({ name: `m${arrow.message.id}`, a: points[k], b: points[k + 1], reach: REACH, bonus: arrow.background ? -2 : 0 });
    }
    for (const step of steps) {
      if (step.member === null) continue;
      const sign = signOf(step);
      const point = { x: scale.toX(step.at), y: lanes.y(step.member) };
      // A sign lies above arrows; a step without one is found where a message arrives.
      if (sign || !step.background) this.add({ name: `s${step.i}`, a: point, b: point, reach: sign ? ROOM[sign] + 3 : REACH, bonus: sign ? 6 : 2 });
    }
  }

  /** @param {Thing} thing */
  add(thing) {
    const { a, b, reach } = thing;
    const length = Math.hypot(b.x - a.x, b.y - a.y);
    if (length > LONGEST) {
      this.long.push(thing);
      return;
    }
    const seen = new Set();
    for (let at = 0; at <= length + CELL / 2; at += CELL / 2) {
      const share = length ? Math.min(1, at / length) : 0;
      const [x, y] = [a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share];
      for (const dx of [-reach, reach]) for (const dy of [-reach, reach]) seen.add(cell(x + dx, y + dy));
    }
    for (const key of seen) {
      const list = this.cells.get(key);
      if (list) list.push(thing);
      else this.cells.set(key, [thing]);
    }
  }

  /** @param {number} x @param {number} y @param {boolean} isName whether it is left of the life lines @returns {string | null} */
  find(x, y, isName) {
    const { run, lanes } = this.picture;
    if (isName) {
      const id = run.order.find((one) => Math.abs(lanes.y(one) - y) <= lanes.pitch / 2);
      return id === undefined ? null : String(id);
    }
    let [best, score] = [/** @type {string | null} */ (null), -Infinity];
    for (const { name, a, b, reach, bonus } of [...(this.cells.get(cell(x, y)) ?? []), ...this.long]) {
      const distance = toSegment({ x, y }, a, b);
      if (distance <= reach && bonus - distance > score) [best, score] = [name, bonus - distance];
    }
    return best;
  }
}

/** @param {number} x @param {number} y */
const cell = (x, y) => Math.floor(x / CELL) * 100003 + Math.floor(y / CELL);
