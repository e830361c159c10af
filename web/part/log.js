/** The log of a run: one line a step, in the engine's words. Rows come from a pool, so that 5,000 steps cost no more than 60. */

import { h, region, set } from "../dom.js";
import { time } from "../model/words.js";

const ROW = 24;
const POOL = 60;

/** @typedef {import("../model/run.js").Run} Run */

export class Log {
  /** @param {{ onStep(i: number): void }} told */
  constructor({ onStep }) {
    /** @type {Run | null} */
    this.run = null;
    /** @type {number[]} the steps that pass the filter */
    this.lines = [];
    this.s = 0;
    this.first = -1;
    this.find = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: "member, kind, words", "aria-label": "Filter the log", on: { input: () => this.filter() } }));
    this.space = h("div", { class: "space" });
    this.rows = Array.from({ length: POOL }, () => {
      const row = h("button", { type: "button", class: "plain line", hidden: true }, h("span", { class: "at" }), h("span", { class: "text" }), h("span", { class: "rules" }));
      row.addEventListener("click", () => onStep(Number(row.dataset.step)));
      return row;
    });
    this.space.append(...this.rows);
    this.scroll = h("div", { class: "lines", role: "log", "aria-label": "Steps", "aria-live": "off", tabindex: 0, on: { scroll: () => this.draw() } }, this.space);
    this.element = region("Log", { class: "log" }, this.find, this.scroll);
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  /** @param {Run} run @param {number} s @param {{ hidden?: boolean }} [options] */
  show(run, s, { hidden = false } = {}) {
    if (run !== this.run || hidden !== this.hidden) {
      this.run = run;
      this.hidden = hidden;
      this.s = s;
      this.filter();
    } else if (s !== this.s) {
      this.s = s;
      if (hidden) this.filter();
      this.follow();
      this.draw(true);
    }
  }

  filter() {
    const { run } = this;
    if (!run) return;
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const until = this.hidden ? this.s : run.length;
    this.lines = run.steps.slice(0, until).filter((step) => {
      if (step.background && !words.length) return false;
      const text = `${step.text} ${step.rules.join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    }).map((step) => step.i);
    set(this.space, { style: { height: `${this.lines.length * ROW}px` } });
    this.follow();
    this.draw(true);
  }

  /** Keeps the last line done in sight. */
  follow() {
    const after = this.lines.findIndex((i) => i >= this.s);
    const done = after < 0 ? this.lines.length : after;
    const [top, height] = [this.scroll.scrollTop, this.scroll.clientHeight];
    if (height && (done * ROW > top + height || (done - 1) * ROW < top)) this.scroll.scrollTop = Math.max(0, done * ROW - height);
  }

  draw(force = false) {
    const { run } = this;
    if (!run) return;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 10);
    if (first === this.first && !force) return;
    this.first = first;
    this.rows.forEach((row, place) => {
      const line = first + place;
      const step = run.steps[this.lines[line]];
      row.hidden = !step;
      if (!step) return;
      const [at, text, rules] = row.children;
      const before = run.steps[this.lines[line - 1]];
      set(row, { style: { top: `${line * ROW}px` }, "data-step": step.i, class: `plain line${step.i >= this.s ? " ahead" : ""}${step.i === this.s - 1 ? " now" : ""}` });
      // Of one instant only the first line has the time.
      set(at, { text: before && before.at === step.at && place > 0 ? "" : time(step.at) });
      set(text, { text: step.text });
      set(rules, { text: step.rules.join(" ") });
    });
  }
}
