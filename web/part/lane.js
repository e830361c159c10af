/** One algorithm of a race: its name, its diagram, its totals. */

import { button, h, set } from "../dom.js";
import { Diagram } from "../draw/diagram.js";
import { totals } from "../model/race.js";
import { count, list, many, time, together } from "../model/words.js";

/** @typedef {import("../model/run.js").Run} Run */

export class Lane {
  /** @param {{ name: string, title: string, summary: string, purpose?: string }} algorithm @param {{ remove(): void, onTime(t: number): void }} told */
  constructor(algorithm, { remove, onTime }) {
    this.algorithm = algorithm;
    this.title = algorithm.title;
    /** @type {Run | null} */
    this.run = null;
    /** The same algorithm in a partition. @type {Run | null} */
    this.parted = null;
    this.diagram = new Diagram({ onTime });
    this.link = h("a", { class: "race-name" }, algorithm.title);
    this.removal = button("✕", remove, { class: "tiny plain race-remove", "aria-label": `Remove ${algorithm.title}`, title: `Remove ${algorithm.title}` });
    this.downtime = { value: h("span", { class: "value" }), unit: h("span", { class: "unit" }), word: h("span", { class: "race-word" }) };
    this.messages = { value: h("span", { class: "value" }), word: h("span", { class: "race-word" }) };
    this.verdict = h("div", { class: "race-number verdict" });
    this.note = h("p", { class: "note" }, brief(algorithm.summary));
    this.picture = h("div", { class: "race-picture" }, this.diagram.element);
    const number = (/** @type {string} */ name, /** @type {Node[]} */ ...parts) => h("div", { class: "race-number" }, h("span", { class: "race-head" }, name), ...parts);
    this.element = h("section", { class: "race-lane", "aria-label": algorithm.title },
      h("div", { class: "race-label" }, h("h3", {}, this.link, this.removal), this.note),
      this.picture,
      number(algorithm.purpose === "excludes" ? "Waiting" : "Downtime", h("span", { class: "figure" }, this.downtime.value, this.downtime.unit), this.downtime.word),
      number("Messages", h("span", { class: "figure" }, this.messages.value), this.messages.word),
      this.verdict);
  }

  /** @param {Run} run @param {string | null} mode the one that was asked for */
  load(run, mode) {
    this.run = run;
    this.element.classList.remove("loading");
    const other = mode !== null && run.data.mode !== mode;
    set(this.note, { text: `${brief(this.algorithm.summary)}${other ? `; here in its ${run.data.mode} mode` : ""}` });
    if (this.picture.firstChild !== this.diagram.element) this.picture.replaceChildren(this.diagram.element);
  }

  /** @param {string} message */
  refuse(message) {
    this.run = null;
    this.picture.replaceChildren(h("p", { class: "problem", role: "alert" }, message));
    for (const part of [this.downtime.value, this.downtime.unit, this.downtime.word, this.messages.value, this.messages.word, this.verdict]) part.replaceChildren();
    this.element.classList.remove("loading");
  }

  /** @param {number} t @param {{ domain: [number, number], spans: { from: number, to: number, text: string }[], begin: number }} axis `begin`: from when on is counted */
  show(t, { domain, spans, begin }) {
    const { run } = this;
    if (!run) return;
    this.diagram.show({ run, position: run.atTime(t), future: "veiled", domain, compact: true, background: false, now: true, spans });
    const { messages, downtime } = totals(run, t, begin);
    const [value, unit] = figure(downtime);
    set(this.downtime.value, { text: value });
    set(this.downtime.unit, { text: ` ${unit}` });
    set(this.messages.value, { text: count(messages) });
  }

  /** What is best, in words; nothing while the race runs. @param {{ shortest: boolean, fewest: boolean }} best */
  praise({ shortest, fewest }) {
    set(this.downtime.word, { text: shortest ? "shortest" : "" });
    set(this.messages.word, { text: fewest ? "fewest" : "" });
  }

  /** Whether two members were inside at once, and who still waits. */
  judgeEntries() {
    const { run } = this;
    if (!run) return;
    const { two_inside: two, waiting } = run.data.metrics.exclusion;
    const bad = two || waiting.length > 0;
    const text = two ? overlaps(run) : waiting.length ? `never, but ${list(waiting.map((/** @type {number} */ id) => run.name(id)))} ${waiting.length === 1 ? "waits" : "wait"} forever` : "never";
    this.verdict.replaceChildren(h("span", { class: "race-head" }, "Two inside"),
      h("span", { class: bad ? "sign bad" : "sign good", "aria-hidden": "true" }, bad ? "✕" : "✓"),
      h("span", { class: bad ? "race-word bad" : "race-word" }, text));
  }

  /** What a partition does to this algorithm: seen in a run of its own, or in this one. @param {Run | null} run @param {boolean} here @param {string} promise what the catalogue says */
  judge(run, here, promise) {
    this.parted = run;
    if (!run) return this.verdict.replaceChildren(h("span", { class: "race-head" }, here ? "Overlap" : "In a partition"));
    const { two_leaders: two } = run.data.metrics;
    set(this.verdict, { title: promise });
    this.verdict.replaceChildren(h("span", { class: "race-head" }, here ? "Overlap" : "In a partition"),
      h("span", { class: two ? "sign bad" : "sign good", "aria-hidden": "true" }, two ? "✕" : "✓"),
      h("span", { class: two ? "race-word bad" : "race-word" }, two ? (here ? overlaps(run) : "two leaders") : run.data.leases ? "one leader at most" : "not in this run"));
  }
}

/** A time as a number and its unit, with one digit after the point while it runs. @param {number} ns */
function figure(ns) {
  if (ns >= 1e9) return [(ns / 1e9).toFixed(2), "s"];
  const ms = ns / 1e6;
  return ms >= 1 || ns === 0 ? [ms >= 100 ? ms.toFixed(0) : ms.toFixed(1), "ms"] : [(ns / 1e3).toFixed(0), "µs"];
}

/** When more than one led: from when to when, or how often and for how long together. @param {Run} run */
function overlaps(run) {
  const { overlap = [] } = run.data.intervals ?? {};
  return overlap.length === 1 ? together(overlap[0], run.excludes) : `two ${run.excludes ? "members inside" : "leaders"}, ${many(overlap.length, "time")}, ${time(run.data.metrics.overlap_ns)} in all`;
}

/** Without the source in brackets. @param {string} text */
const brief = (text) => text.replace(/\s*\([^)]*\)\s*$/, "");
