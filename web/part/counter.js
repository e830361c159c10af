/** The count of messages beside the formula: predicted, measured, equal or not. It runs with the time on screen. */

import { h, keyed, region, set } from "../dom.js";
import { tokenSign } from "../draw/signs.js";
import { count, grouped, ids, list, many } from "../model/words.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {{ ok: boolean | null, text: string }} Verdict `ok` null: nothing to compare with
 */

/** What the count says about the formula, at the end of a run. @param {Run} run @returns {Verdict} */
export function verdict(run) {
  const { formula, messages, no_formula: why } = run.data.metrics;
  if (!formula) return { ok: null, text: !why ? "No formula applies." : /^no formula/i.test(why) ? capital(why) : `No formula applies: ${lower(why)}` };
  if (formula.value === messages) return { ok: true, text: "equal to the formula" };
  return { ok: false, text: `${count(messages)} counted, ${count(formula.value)} predicted${why ? `: ${lower(why)}` : "."}` };
}

/** A sentence after a colon begins with a small letter, unless it begins with a name or a sign. @param {string} text */
const lower = (text) => (/^[A-Z][a-z]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text);

export class Counter {
  constructor() {
    this.number = h("strong", { class: "number" });
    this.total = h("span", { class: "total" });
    this.verdict = h("span", { class: "verdict" });
    this.kinds = h("ul", { class: "kinds" });
    this.formula = h("p", { class: "formula" });
    this.letters = h("p", { class: "note" });
    this.note = h("p", { class: "small soft" });
    this.element = region("Messages", { class: "counter" },
      h("p", { class: "count" }, this.number, this.total, this.verdict), this.kinds, this.formula, this.letters, this.note);
    this.drawn = "";
  }

  /** @param {Run} run @param {number} s steps done @param {{ hidden?: boolean }} [options] `hidden`: neither totals nor the formula */
  show(run, s, { hidden = false } = {}) {
    const key = `${run.data.hash} ${s} ${hidden}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const { metrics } = run.data;
    // Of a run that is too large to be recorded there are only the totals.
    const sent = run.length ? run.sent(s) : metrics.messages;
    // Of a run that was cut off the last messages are never reached.
    const complete = sent >= metrics.messages;
    set(this.number, { text: count(sent) });
    set(this.total, { text: hidden || complete ? "" : `of ${count(metrics.messages)}` });
    const { ok, text } = verdict(run);
    const tell = complete && !hidden && ok !== null;
    set(this.verdict, { text: !tell ? "" : ok ? `✓ ${text}` : `✗ ${text.split(":")[0]}`, class: `verdict ${ok ? "good" : "bad"}` });
    this.drawKinds(run, s, hidden);
    this.drawFormula(run, hidden, complete);
    set(this.note, { text: hidden ? "" : this.notes(run, s, complete) });
  }

  /** @param {Run} run @param {number} s @param {boolean} hidden */
  drawKinds(run, s, hidden) {
    const totals = () => run.kinds.map((/** @type {any} */ _, /** @type {number} */ i) => run.data.metrics.by_kind.find((/** @type {any} */ one) => one.kind === i)?.count ?? 0);
    const now = run.length ? run.sentByKind(s) : totals();
    const all = run.length ? run.sentByKind(run.length) : now;
    const kinds = run.kinds.map((/** @type {any} */ kind, /** @type {number} */ i) => ({ ...kind, i, now: now[i], all: all[i] }))
      .filter((/** @type {any} */ kind) => !kind.background && (hidden ? kind.now : kind.all) > 0);
    keyed(this.kinds, kinds, (/** @type {any} */ { family, name }) => `${family} ${name}`,
      (/** @type {any} */ { family, name, title }) => h("li", { title }, tokenSign(family), h("span", {}, name), h("strong", {})),
      (row, /** @type {any} */ kind) => set(/** @type {Element} */ (row.lastElementChild), { text: count(kind.now), class: kind.now < kind.all ? "running" : null }));
  }

  /** @param {Run} run @param {boolean} hidden @param {boolean} complete */
  drawFormula(run, hidden, complete) {
    const { formula } = run.data.metrics;
    this.formula.hidden = hidden || !formula;
    const letters = hidden || !formula ? "" : lettersOf(formula.name, run.excludes);
    set(this.letters, { text: letters, hidden: !letters });
    if (hidden || !formula) return this.formula.replaceChildren();
    const filled = formula.filled && formula.filled !== formula.name ? ` = ${grouped(formula.filled)}` : "";
    set(this.formula, { title: formula.source ?? null });
    this.formula.replaceChildren(h("strong", {}, formula.name), h("span", { class: "soft" }, filled), " = ", h("strong", {}, count(formula.value)),
      complete ? "" : h("span", { class: "soft" }, " predicted"));
  }

  /** What the number alone does not say. @param {Run} run @param {number} s @param {boolean} complete */
  notes(run, s, complete) {
    const parts = [];
    const each = run.data.metrics.exclusion?.per_entry;
    if (complete && typeof each === "number") parts.push(`${each} for each of ${many(run.data.metrics.exclusion.order.length, "entry", "entries")}.`);
    const { ok, text } = verdict(run);
    if (complete && ok === false && text.includes(":")) parts.push(`${capital(text.slice(text.indexOf(":") + 2))}`);
    if (ok === null) parts.push(text);
    const down = run.messages.filter((message) => message.by < s && message.fate === "receiver down" && run.counts(message.id));
    if (down.length) {
      const to = [...new Set(down.map((message) => message.to))].sort((a, b) => a - b);
      const names = to.length > 6 ? `${to.length} members that are down` : `${to.every((id) => run.name(id) === String(id)) ? ids(to) : list(to.map((id) => run.name(id)))}, which ${to.length === 1 ? "is" : "are"} down`;
      parts.push(`${count(down.length)} of the ${count(run.sent(s))} ${down.length === 1 ? "goes" : "go"} to ${names}.`);
    }
    const background = run.messages.filter((message) => message.by < s && run.kinds[message.kind].background).length;
    if (background) parts.push(`Not counted: ${count(background)} that keep contact (heartbeats, acknowledgements).`);
    return parts.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(" ");
  }
}

/** What the letters of a formula stand for. Its name may begin with its source: "Kordafshari (4): n²−1". @param {string} name @param {boolean} excludes */
function lettersOf(name, excludes) {
  const formula = name.slice(name.lastIndexOf(": ") + 1);
  const has = (/** @type {string} */ letter) => new RegExp(`(?<![A-Za-z])${letter}(?![A-Za-z])`).test(formula);
  const members = ["N", "n"].filter(has).join(" and ");
  return [...(members ? [`${members}: members`] : []), ...(has("r") ? ["r: the starter is the r-th lowest"] : []), ...(has("K") ? ["K: members of a voting set"] : []), ...(has("d") ? [excludes ? "d: hops to the token" : "d: steps round the ring from the starter to the highest"] : [])].join("; ");
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
