/** Two runs beside each other in numbers: A as it was, B with the changes, and the difference. */

import { button, h, region } from "../dom.js";
import { count, list, time } from "../model/words.js";
import { verdict } from "./counter.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/branch.js").Change} Change
 */

/** Whether no member leads at the end of the run: then its downtime has no length. @param {Run} run */
const endsLeaderless = (run) => (run.data.intervals?.downtime ?? []).some((/** @type {[number, number | null]} */ [, to]) => (to ?? null) === null);

/**
 * @typedef {{ title: string, of(run: Run): number | string, difference: null | ((d: number) => string) }} Row
 * @type {Row[]}
 */
const OF_ELECTIONS = [
  { title: "leader at the end", of: (run) => run.data.metrics.leader === null ? "none" : run.name(run.data.metrics.leader), difference: null },
  { title: "all follow it", of: (run) => (run.data.metrics.agreed ? "yes" : "no"), difference: null },
  { title: "messages", of: (run) => run.data.metrics.messages, difference: count },
  { title: "sent to members down", of: (run) => run.data.metrics.to_down, difference: count },
  { title: "downtime", of: (run) => (endsLeaderless(run) ? "to the end" : run.data.metrics.downtime_ns ?? 0), difference: time },
  { title: "last member knows", of: (run) => run.data.metrics.informed_ns ?? "never", difference: time },
  { title: "elections", of: (run) => run.data.metrics.elections, difference: count },
  { title: "overlap", of: (run) => run.data.metrics.overlap_ns ?? 0, difference: time },
];

const entries = (/** @type {Run} */ run) => run.data.metrics.exclusion;
const named = (/** @type {Run} */ run, /** @type {number[]} */ some) => (some.length > 8 ? `${count(some.length)} entries` : list(some.map((id) => run.name(id))) || "none");

/** The same about entries into the critical section. @type {Row[]} */
const OF_ENTRIES = [
  { title: "entered, in order", of: (run) => named(run, entries(run).order), difference: null },
  { title: "wait at the end", of: (run) => named(run, entries(run).waiting), difference: null },
  { title: "messages", of: (run) => run.data.metrics.messages, difference: count },
  { title: "messages per entry", of: (run) => entries(run).per_entry ?? "no entry", difference: (d) => String(Math.round(d * 100) / 100) },
  { title: "sent to members down", of: (run) => run.data.metrics.to_down, difference: count },
  { title: "longest wait", of: (run) => entries(run).longest_wait_ns ?? "no entry", difference: time },
  { title: "two inside for", of: (run) => run.data.metrics.overlap_ns ?? 0, difference: time },
];

/** The rows of the table, as texts. @param {Run} a @param {Run} b */
export function comparison(a, b) {
  return (a.excludes && b.excludes ? OF_ENTRIES : OF_ELECTIONS).map(({ title, of, difference }) => {
    const [left, right] = [of(a), of(b)];
    const text = (/** @type {number | string} */ value) => (typeof value === "string" ? value : difference === time ? (value === 0 ? "0" : time(value)) : count(value));
    const numbers = typeof left === "number" && typeof right === "number" && difference !== null && left !== right;
    const d = numbers ? right - left : 0;
    return { title, a: text(left), b: text(right), difference: numbers ? `${d > 0 ? "+" : "−"}${difference(Math.abs(d))}` : "", differs: left !== right };
  });
}

export class Compare {
  constructor() {
    this.table = h("table", {});
    this.same = h("p", { class: "small", role: "status" }, "No difference in what is counted.");
    this.element = region("Compare", { class: "compare" }, this.same, this.table);
    this.formula = h("div", { class: "small" });
    this.formulas = region("Formula", { class: "formulas" }, this.formula);
  }

  /** @param {Run} a @param {Run} b */
  show(a, b) {
    const rows = comparison(a, b);
    this.same.hidden = rows.some(({ differs }) => differs);
    this.table.replaceChildren(
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "what")), ["A", "B", "B − A"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.differs ? "differs" : null },
        h("th", { scope: "row" }, row.title), h("td", {}, row.a), h("td", {}, row.b), h("td", { class: "soft" }, row.difference)))));
    this.formula.replaceChildren(...[["A", a], ["B", b]].map(([name, run]) => line(/** @type {string} */ (name), /** @type {Run} */ (run))));
  }
}

/** @param {string} name @param {Run} run */
function line(name, run) {
  const { ok, text } = verdict(run);
  const { messages } = run.data.metrics;
  const words = ok ? `${count(messages)} counted, ${count(messages)} predicted.` : text;
  return h("p", {}, h("strong", { class: ok === null ? "soft" : ok ? "good" : "bad" }, `${ok === null ? "–" : ok ? "✓" : "✗"} ${name}: `), words.endsWith(".") ? words : `${words}.`);
}

/** The changes of a branch, each of which can be taken back. @param {Change[]} changes @param {(change: Change) => void} onRemove */
export function chips(changes, onRemove) {
  return h("ul", { class: "chips", "aria-label": "What was changed" }, changes.map((change) => h("li", { class: "chip-change" },
    h("span", {}, change.text), button("×", () => onRemove(change), { class: "plain", "aria-label": `Take back: ${change.text}` }))));
}
