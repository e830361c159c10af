/**
 * Scale: the same scenario with more members. A diagram while it can be read, a heat map up to 2,000 members, curves above.
 * The count stands beside the formula at every size.
 */

import { button, h, set } from "../dom.js";
import { Diagram } from "../draw/diagram.js";
import { curves, DASHES } from "../draw/curves.js";
import { growthCurve } from "../draw/growth.js";
import { drawHeat } from "../draw/heat.js";
import { scaledFlags } from "../model/address.js";
import { roundTicks } from "../model/scale.js";
import { count, grouped, many, time } from "../model/words.js";

/** @typedef {import("../model/run.js").Run} Run */

const [LEAST, MOST, DIAGRAM, HEAT] = [3, 1_000_000, 16, 2000];
const NOTCHES = 1000;

/** A place of the slider ⇄ a number of members: each notch is the same factor. Small numbers are hit exactly. @param {number} notch */
export function membersAt(notch) {
  const exact = LEAST * (MOST / LEAST) ** (notch / NOTCHES);
  const digits = exact < 20 ? 0 : Math.floor(Math.log10(exact)) - 1;
  return Math.round(exact / 10 ** digits) * 10 ** digits;
}

/** @param {number} members */
export const notchOf = (members) => Math.round((NOTCHES * Math.log(members / LEAST)) / Math.log(MOST / LEAST));

export class Scale {
  /** @param {import("../engine/simulation.js").Simulation} simulation @param {{ onMembers(n: number): void, onLeave(): void }} told */
  constructor(simulation, { onMembers, onLeave }) {
    this.simulation = simulation;
    this.slider = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 0, max: NOTCHES, "aria-label": "Members" }));
    this.exact = /** @type {HTMLInputElement} */ (h("input", { type: "number", min: LEAST, max: MOST, "aria-label": "Members, exactly" }));
    this.slider.addEventListener("input", () => this.want(membersAt(Number(this.slider.value)), onMembers));
    this.exact.addEventListener("change", () => this.want(Math.max(LEAST, Math.min(MOST, Math.round(Number(this.exact.value) || LEAST))), onMembers));
    this.result = h("p", { class: "scale-result" });
    this.note = h("p", { class: "note" });
    this.more = h("p", { class: "note" });
    this.picture = h("div", { class: "scale-picture" });
    this.diagram = new Diagram();
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { role: "img" }));
    this.element = h("div", { class: "scale" },
      h("div", { class: "head" }, h("h2", {}, "Scale"), button("Back to the run", onLeave, { class: "tiny" })),
      h("div", { class: "scale-control" }, h("span", { class: "soft" }, "3"), this.slider, h("span", { class: "soft" }, "1,000,000"), this.exact, h("span", {}, "members")),
      this.result, this.picture, h("div", {}, this.note, this.more));
    this.key = "";
    /** @type {any} */
    this.answer = null;
    new ResizeObserver(() => this.answer && this.draw()).observe(this.picture);
  }

  /** Waits for the hand to rest: a million members take a moment. @param {number} members @param {(n: number) => void} tell */
  want(members, tell) {
    this.mark(members);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => tell(members), 150);
  }

  /** @param {number} members */
  mark(members) {
    this.slider.value = String(notchOf(members));
    this.exact.value = String(members);
    set(this.slider, { "aria-valuetext": many(members, "member") });
  }

  /** @param {any} source @param {Run} run the run at its own size @param {import("../model/address.js").Word[]} words of its sentence @param {number} members */
  async show(source, run, words, members) {
    const key = JSON.stringify([source, members]);
    if (key === this.key) return;
    this.key = key;
    this.mark(members);
    this.element.classList.add("computing");
    try {
      const [answer, small] = await Promise.all([this.simulation.scale(source, members), members <= DIAGRAM ? this.smallRun(source, run, words, members) : null]);
      if (this.key !== key) return;
      // The picture and the number beside it are of the same run, or there is no picture.
      this.answer = { ...answer, run: small?.data.metrics.messages === answer.messages ? small : null };
      this.tell();
      this.draw();
    } catch (problem) {
      if (this.key !== key) return;
      this.answer = null;
      this.result.replaceChildren();
      this.picture.replaceChildren(h("p", { class: "problem", role: "alert" }, /** @type {Error} */ (problem).message));
    } finally {
      if (this.key === key) this.element.classList.remove("computing");
    }
  }

  /** A run of that size that can be drawn, if the scenario has one. @param {any} source @param {Run} run @param {import("../model/address.js").Word[]} words @param {number} members @returns {Promise<Run | null>} */
  async smallRun(source, run, words, members) {
    if (members === run.order.length) return run;
    const flags = scaledFlags(words, members);
    return flags && this.simulation.run({ ...source, flags: [...source.flags.filter((/** @type {[string, string]} */ [flag]) => !flags.some(([name]) => name === flag)), ...flags] }).catch(() => null);
  }

  /** The numbers. */
  tell() {
    const { members, messages, formula, turnaround_ns: turnaround } = this.answer;
    // What was not simulated is equal to nothing but itself.
    const verdict = !formula || this.answer.growth ? null : formula.value === messages;
    this.result.replaceChildren(
      h("strong", { class: "number" }, count(messages)), h("span", {}, ` messages with ${many(members, "member")}`),
      formula ? h("span", { class: "formula" }, h("strong", {}, formula.name), formula.filled && formula.filled !== formula.name ? ` = ${grouped(formula.filled)}` : "", " = ", h("strong", {}, count(formula.value))) : h("span", { class: "soft" }, "no formula applies"),
      this.answer.growth ? h("span", { class: "soft" }, "Too many to simulate here: this is the formula.") : verdict === null ? "" : h("span", { class: verdict ? "good" : "bad" }, verdict ? "✓ equal to the formula" : "✗ not equal to the formula"),
      turnaround ? h("span", { class: "soft" }, `last message at ${time(turnaround)}`) : "");
  }

  draw() {
    const { members, run, heat, growth, curves: lines } = this.answer;
    this.more.textContent = growth ? "" : this.answer.note ?? "";
    const { clientWidth: width, clientHeight: height } = this.picture;
    if (width < 40 || height < 40) return;
    if (growth) {
      this.picture.replaceChildren(growthCurve(growth, { width, height }));
      this.note.textContent = `Messages by the number of members, from ${count(growth.points[0][0])} to ${count(members)}. Each line of the grid is a power of ten.`;
    } else if (members <= DIAGRAM && run) {
      if (this.picture.firstChild !== this.diagram.element) this.picture.replaceChildren(this.diagram.element);
      this.diagram.show({ run, position: { s: run.length, t: run.end }, selection: null, future: "shown", now: false, strip: true });
      this.note.textContent = "Up to 16 members: the diagram. Up to 2,000 a heat map of who sends how much when; beyond, curves.";
    } else if (members <= HEAT && heat?.cells.length) {
      this.picture.replaceChildren(this.canvas);
      drawHeat(this.canvas, heat, { width, height, top: "lowest", bottom: "highest" });
      this.note.textContent = `${(heat.label ?? "messages").replace(/^./, (/** @type {string} */ sign) => sign.toUpperCase())}: the darker, the more.`;
    } else {
      const end = Math.max(1, this.answer.turnaround_ns ?? 0, ...lines.flatMap((/** @type {any} */ line) => line.points.map((/** @type {[number, number]} */ [t]) => t)));
      // From nothing at the beginning to the total at the end.
      const series = lines.map((/** @type {any} */ line, /** @type {number} */ place) => ({ ...line, strong: true, dash: DASHES[place % DASHES.length], points: [[0, 0], ...line.points, [end, line.points.at(-1)?.[1] ?? 0]] }));
      const ticks = roundTicks(end, width);
      const top = Math.max(1, ...lines.flatMap((/** @type {any} */ line) => line.points.map((/** @type {[number, number]} */ point) => point[1])));
      const names = lines.map((/** @type {any} */ line) => `${line.name} ${count(line.points.at(-1)?.[1] ?? 0)}`.length);
      const [left, right] = [count(top).length * 7 + 16, Math.max(...names, 8) * 7.4 + 40];
      this.picture.replaceChildren(curves({ series, x: [0, end], width, height, left, right, ticks, times: ticks.map(time) }));
      this.note.textContent = "Messages sent so far, by kind.";
    }
  }
}
