/** What the selected member holds at this step: role, leader, term, timers with the time left, what changed last. */

import { h, region, set } from "../dom.js";
import { memberSign } from "../draw/signs.js";
import { standing } from "../model/picture.js";
import { time } from "../model/words.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/run.js").State} State
 * @typedef {import("../model/run.js").Position} Position
 */

const SIGNS = ["leader", "candidate", "follower", "inside", "waiting", "outside", "witness", "drained", "paused", "down", "unknown"];

export class Inspector {
  constructor() {
    this.head = h("h3", {});
    this.facts = h("dl", { class: "facts" });
    this.timers = h("dl", { class: "facts timers" });
    this.change = h("p", { class: "changed" });
    this.element = region("Member", { class: "inspector" }, this.head, this.facts, this.timers, this.change);
    this.drawn = "";
  }

  /** @param {Run} run @param {number | null} id @param {Position} position */
  show(run, id, { s, t }) {
    const state = id === null ? undefined : run.frame(s).get(id);
    this.element.hidden = !state;
    if (!state) return;
    const key = `${run.data.hash} ${id} ${s}`;
    if (key !== this.drawn) {
      this.drawn = key;
      this.draw(run, state, s, t);
    }
    this.run(run, state.id, t);
  }

  /** @param {Run} run @param {State} state @param {number} s @param {number} t */
  draw(run, state, s, t) {
    const member = run.members.get(state.id);
    const how = standing(state, t, member?.witness);
    const last = lastChange(run, state.id, s);
    const changed = new Set(last ? Object.keys(last.changes) : []);
    const sign = /** @type {any} */ (SIGNS.includes(how) ? how : "unknown");
    this.head.replaceChildren(memberSign(sign), `${run.name(state.id)}: ${how}`);
    const facts = [
      ["follows", state.up && !run.excludes ? (state.leader === state.id ? "itself" : state.leader === null ? "no leader" : run.name(state.leader)) : "", "leader"],
      ["term", state.term ? String(state.term) : "", "term"],
      ["lease until", state.lease ? time(state.lease) : "", "lease"],
      ["priority", member && member.priority !== member.id ? String(member.priority) : "", ""],
    ].filter(([, value]) => value);
    this.facts.replaceChildren(...facts.flatMap(([name, value, field]) =>
      [h("dt", {}, name), h("dd", { class: changed.has(field) ? "new" : null }, value)]));
    this.change.replaceChildren(...(last ? [h("span", { class: "soft" }, `Changed at ${time(last.at)}: `), last.text] : []));
  }

  /** The timers, which run. @param {Run} run @param {number} id @param {number} t */
  run(run, id, t) {
    const armed = (run.data.timers ?? []).filter((/** @type {any} */ timer) =>
      timer.member === id && !timer.background && timer.from <= t && t < timer.due && ((timer.to ?? null) === null || t < timer.to));
    const text = armed.map((/** @type {any} */ timer) => `${timer.name} ${timer.due}`).join();
    if (this.timers.dataset.of !== text) {
      this.timers.dataset.of = text;
      this.timers.replaceChildren(...armed.flatMap((/** @type {any} */ timer) => [h("dt", {}, `timer ${timer.name}`), h("dd", {})]));
    }
    const values = this.timers.querySelectorAll("dd");
    armed.forEach((/** @type {any} */ timer, /** @type {number} */ place) => set(values[place], { text: `fires in ${time(Math.round(timer.due - t))}` }));
  }
}

/** What changed last for a member when `s` steps are done. @param {Run} run @param {number} id @param {number} s */
function lastChange(run, id, s) {
  for (let i = s - 1; i >= 0; i--) {
    const found = run.steps[i].change.find(([member]) => member === id);
    if (!found) continue;
    const text = Object.entries(found[1]).map(([field, [from, to]]) => `${FIELDS[field] ?? field} ${value(run, field, from)} → ${value(run, field, to)}`).join(", ");
    return { at: run.steps[i].at, changes: found[1], text };
  }
  return null;
}

/** @type {Record<string, string>} */
const FIELDS = { up: "state", section: "section", paused_until: "paused until", lease: "lease until" };

/** @param {Run} run @param {string} field @param {any} one */
function value(run, field, one) {
  if (one === null || one === undefined) return "none";
  if (field === "leader") return run.name(one);
  if (field === "up") return one ? "up" : "down";
  if (field === "lease" || field === "paused_until") return time(one);
  return String(one);
}
