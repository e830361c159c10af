/** The now line, and the messages in flight: dotted from where they are to their receivers. */

import { s, set } from "../dom.js";
import { polyline } from "../model/layout.js";
import { time } from "../model/words.js";

const MOST = 120;

export class Now {
  constructor() {
    this.line = s("path", { class: "line" });
    this.handle = s("path", { class: "handle", d: "M-7,-1H7L0,8Z" });
    this.label = s("text", { y: 9 });
    this.element = s("svg", { class: "now", width: 201, "aria-hidden": "true" }, s("g", { transform: "translate(100.5 0)" }, this.line, this.handle, this.label));
    this.flights = s("g", { class: "flights" });
    this.x = -100;
    this.top = 12;
    /** A pool: nothing is made while time passes. @type {{ group: SVGElement, ground: SVGElement, rest: SVGElement, dot: SVGElement }[]} */
    this.pool = [];
    /** @type {WeakMap<object, Map<string, import("../model/layout.js").Arrow>>} */
    this.known = new WeakMap();
  }

  /** @param {number} height */
  resize(height) {
    set(this.element, { height });
  }

  /** @param {{ picture: import("./ground.js").Picture, position: import("../model/run.js").Position, x: number, left: number, right: number, on: boolean, text: boolean }} shown */
  show({ picture, position, x, left, right, on, text }) {
    const seen = on && x >= left - 2 && x <= right + 1;
    set(this.element, { display: seen ? null : "none" });
    this.x = seen ? x : -100;
    this.top = text ? 14 : 0;
    const bottom = picture.lanes.bottom + (picture.strip ? 22 : 6);
    set(this.line, { d: `M0,${this.top}V${bottom}` });
    set(this.handle, { transform: `translate(0 ${this.top})`, display: text ? null : "none" });
    // The sheet of the now line is moved as a whole: nothing is painted again.
    set(this.element, { style: { transform: `translateX(${Math.round(x * 2) / 2 - 100.5}px)` } });
    if (text) {
      const late = x > right - 80;
      set(this.label, { text: time(Math.round(position.t / 1e4) * 1e4 || position.t), "text-anchor": late ? "end" : "start", x: late ? -10 : 10, y: 13 });
    }
    this.fly(on ? picture : null, position);
  }

  /** @param {import("./ground.js").Picture | null} picture @param {import("../model/run.js").Position} position */
  fly(picture, position) {
    const flying = picture && !picture.compact ? picture.run.inFlight(position).filter(({ message }) => !picture.run.kinds[message.kind].background) : [];
    let used = 0;
    const x = picture ? picture.scale.toX(position.t) : 0;
    for (const { message, copy, lost } of flying.slice(0, MOST)) {
      const arrow = this.arrowOf(/** @type {any} */ (picture), message.id, copy);
      const left = arrow && !lost ? after(polyline(arrow), x) : null;
      if (!arrow || !left) continue;
      const one = this.pool[used] ?? this.make();
      used++;
      const { here, rest } = left;
      const d = `M${here.x},${here.y}${rest.map(({ x, y }) => `L${x},${y}`).join("")}`;
      set(one.group, { class: `flight family-${arrow.family}`, display: null });
      set(one.ground, { d });
      set(one.rest, { d });
      set(one.dot, { cx: here.x, cy: here.y });
    }
    for (const one of this.pool.slice(used)) set(one.group, { display: "none" });
  }

  make() {
    const [ground, rest, dot] = [s("path", { class: "way-ground" }), s("path", { class: "rest" }), s("circle", { r: 3 })];
    const one = { group: s("g", {}, ground, rest, dot), ground, rest, dot };
    this.pool.push(one);
    this.flights.append(one.group);
    return one;
  }

  /** @param {import("./ground.js").Picture} picture @param {number} id @param {boolean} copy */
  arrowOf(picture, id, copy) {
    let map = this.known.get(picture);
    if (!map) {
      map = new Map(picture.arrows.map((arrow) => [`${arrow.message.id}${arrow.copy ? "+" : ""}`, arrow]));
      this.known.set(picture, map);
    }
    return map.get(`${id}${copy ? "+" : ""}`);
  }

  /** Whether a pointer is on the handle or the line near it. @param {number} x @param {number} y */
  isAt(x, y) {
    return this.top > 0 && Math.abs(x - this.x) <= (y < this.top + 18 ? 14 : 5);
  }
}

/** Where a way crosses the now line, and what is left of it; null if it is all before or all after. @param {import("../model/layout.js").Point[]} points @param {number} x */
function after(points, x) {
  if (x <= points[0].x) return null;
  for (let k = 0; k + 1 < points.length; k++) {
    const [a, b] = [points[k], points[k + 1]];
    if (x < b.x) return { here: { x, y: a.y + ((x - a.x) / (b.x - a.x)) * (b.y - a.y) }, rest: points.slice(k + 1) };
  }
  return null;
}
