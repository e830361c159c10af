/**
 * The sheets of a diagram, one above the other: the ground, the mass of arrows, arrows and texts, a veil over the
 * future, what moves, and the now line. Each is a separate layer, so that what moves with time repaints nothing else.
 */

import { h, s, set } from "../dom.js";
import { drawMass } from "./canvas.js";
import { Now } from "./now.js";
import { colour } from "./text.js";

let number = 0;

/** How much of the picture is drawn on each side of what is in sight: so far it can be moved without being drawn again. */
const MARGIN = 0.3;

export class Sheets {
  constructor() {
    const id = `plot-${++number}`;
    const clipped = `url(#${id})`;
    this.clip = s("rect", { y: 0 });
    this.layers = Object.fromEntries(["axis", "ground", "strip", "arrows", "marks", "labels", "emphasis"].map((name) => [name, s("g", { class: `layer ${name}` })]));
    const { axis, ground, strip, arrows, marks, labels, emphasis } = this.layers;
    this.back = s("g", {}, axis, ground, strip);
    this.front = s("g", {}, arrows, marks, labels, emphasis);
    this.now = new Now();
    /** Signs at the now line that have happened: the veil is not to cut through them. */
    this.happened = s("g", { class: "layer marks happened" });
    this.difference = s("g", { class: "difference" });
    this.moving = s("g", {}, this.now.flights, this.happened, this.difference);
    this.names = s("g", { class: "names" });
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { "aria-hidden": "true" }));
    this.mass = h("div", { class: "mass" }, this.canvas);
    this.veil = h("div", { class: "veil" });
    const sheet = (/** @type {string} */ name, /** @type {SVGElement[]} */ ...content) => s("svg", { class: name, "aria-hidden": "true" }, ...content);
    this.svgs = [
      sheet("sheet-under", s("defs", {}, s("clipPath", { id }, this.clip)), s("g", { "clip-path": clipped }, this.back), this.names),
      sheet("sheet-over", s("g", { "clip-path": clipped }, this.front)),
      sheet("sheet-top", s("g", { "clip-path": clipped }, this.moving)),
    ];
    this.tip = h("div", { class: "tip-text", hidden: true });
    this.element = h("div", { class: "diagram", role: "img", "aria-label": "Space-time diagram" },
      this.svgs[0], this.mass, this.svgs[1], h("div", { class: "veils" }, this.veil), this.svgs[2], this.now.element, this.tip);
    /** For which pan the canvas was drawn. */
    this.drawn = NaN;
    /** The present values of the tokens, because reading them costs a layout. @type {Map<string, string>} */
    this.colours = new Map();
  }

  /** The theme has changed. */
  forgetColours() {
    this.colours.clear();
    this.drawn = NaN;
  }

  /** @param {string} name */
  colour(name) {
    let found = this.colours.get(name);
    if (found === undefined) {
      found = colour(this.element, name);
      this.colours.set(name, found);
    }
    return found;
  }

  /** @param {{ width: number, height: number }} box @param {number} left @param {number} plot @param {boolean} compact */
  resize({ width, height }, left, plot, compact) {
    for (const svg of this.svgs) set(svg, { width, height, viewBox: `0 0 ${width} ${height}` });
    set(this.clip, { x: left - 19, width: plot + (compact ? 19 : 37), height });
    set(this.mass, { style: { left: `${left - 14}px`, width: `${plot + 32}px` } });
    this.now.resize(height);
    this.drawn = NaN;
  }

  /** Moves everything sideways. @param {number} left @param {number} pan */
  shift(left, pan) {
    for (const group of [this.back, this.front, this.moving]) set(group, { transform: `translate(${left - pan} 0)` });
    set(this.names, { transform: `translate(${left} 0)` });
  }

  /** @param {import("./ground.js").Picture} picture @param {{ shared: number | null, pan: number, plot: number, height: number }} view */
  drawMass(picture, { shared, pan, plot, height }) {
    const margin = plot * MARGIN;
    if (!(Math.abs(pan - this.drawn) < margin)) {
      this.drawn = pan;
      drawMass(this.canvas, {
        arrows: picture.arrows, width: plot + 2 * margin, height, shift: margin + 14 - pan,
        shared: ({ message }) => shared !== null && message.by < shared, colour: (name) => this.colour(name),
      });
      set(this.canvas, { style: { width: `${plot + 2 * margin}px`, height: `${height}px` } });
    }
    set(this.canvas, { style: { transform: `translateX(${this.drawn - pan - margin}px)` } });
  }
}
