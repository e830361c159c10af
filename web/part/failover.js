/** The parts of a failover: how long each took, and which setting governs the largest. */

import { button, h, keyed, set } from "../dom.js";
import { length, running } from "../model/scene.js";

/** @typedef {import("../model/scene.js").Failover} Failover */

/** A part narrower than this has its text below the bar. */
const ROOM = 130;

export class FailoverPanel {
  /** @param {(at: number) => void} onChoose */
  constructor(onChoose) {
    this.number = h("p", { class: "failover-number" }, h("strong", {}), " ", h("span", {}));
    this.bar = h("div", { class: "failover-bar", role: "img" });
    this.small = h("p", { class: "failover-small note" });
    this.who = h("p", { class: "note" });
    this.advice = h("p", { class: "note" });
    this.before = button("‹", () => this.go(-1), { class: "tiny square", "aria-label": "The failover before" });
    this.after = button("›", () => this.go(1), { class: "tiny square", "aria-label": "The failover after" });
    this.place = h("span", { class: "note" });
    this.empty = h("p", { class: "empty" });
    this.title = h("h2", {}, "Last failover");
    this.element = h("section", { class: "failover", "aria-label": "Last failover" },
      h("div", { class: "head" }, this.title, h("div", { class: "failover-steps" }, this.before, this.place, this.after)),
      this.number, this.bar, this.small, this.who, this.advice, this.empty);
    this.onChoose = onChoose;
    /** @type {Failover[]} */
    this.failovers = [];
    this.chosen = -1;
    this.key = "";
  }

  /** @param {number} step */
  go(step) {
    const next = this.failovers[this.chosen + step];
    if (next) this.onChoose(next.at_us);
  }

  /**
   * @param {Failover[]} failovers @param {number | null} at the time of the one chosen; null: the last
   * @param {{ since: number | null, overlap: number | null, now: number, canKill: boolean, self?: string }} live `self`: whose page this is; `since`: when the last leader was lost, if there is none now; `overlap`: since when several lead
   */
  show(failovers, at, { since, overlap, now, canKill, self }) {
    const bad = since ?? overlap;
    this.failovers = failovers;
    const found = failovers.findIndex((one) => one.at_us === at);
    this.chosen = found < 0 ? failovers.length - 1 : found;
    const failover = bad === null || found >= 0 ? failovers[this.chosen] : undefined;
    set(this.element, { "data-state": bad !== null && !failover ? "running" : failover ? (failover.downtime_us === null ? "unknown" : "done") : "none" });
    set(this.title, { text: this.chosen === failovers.length - 1 || !failover ? "Last failover" : "Failover" });
    for (const part of [this.before, this.place, this.after]) part.hidden = failovers.length < 2 || !failover;
    set(this.place, { text: `${this.chosen + 1} of ${failovers.length}` });
    set(this.before, { disabled: this.chosen <= 0 });
    set(this.after, { disabled: this.chosen >= failovers.length - 1 });
    for (const part of [this.bar, this.small, this.who, this.advice]) part.hidden = !failover;
    this.number.hidden = !failover && bad === null;
    this.empty.hidden = Boolean(failover) || bad !== null;
    if (!failover) {
      this.key = "";
      if (bad === null) set(this.empty, { text: canKill ? "No failover yet. Kill the leader and see how long the cluster is without one." : "No failover since this node started." });
      else this.write(running(now - bad), since === null ? "overlap: several lead" : "without a leader");
      return;
    }
    const key = JSON.stringify([failover, this.bar.clientWidth > 0]);
    if (key === this.key) return;
    this.key = key;
    this.draw(failover, self);
  }

  /** @param {string} number @param {string} rest */
  write(number, rest) {
    set(this.number.children[0], { text: number });
    set(this.number.children[1], { text: rest });
  }

  /** @param {Failover} failover @param {string | undefined} self */
  draw(failover, self) {
    const { parts } = failover;
    const total = failover.downtime_us ?? 0;
    const overlap = failover.overlap_us === null ? "" : `; overlap ${failover.overlap_us ? length(failover.overlap_us) : "0"}`;
    if (failover.downtime_us === null) this.write("Not measured", failover.to === self ? `${self} does not know when the last lease ended` : `${failover.to} took over: its page may show it`);
    else this.write(length(total), `downtime${overlap}`);
    const width = this.bar.clientWidth || 300;
    const wide = (/** @type {Failover["parts"][number]} */ part) => (part.us / total) * width >= ROOM;
    this.bar.hidden = total === 0 || parts.length === 0;
    keyed(this.bar, total ? parts : [], ({ name }) => name, () => h("div", {}, h("span", {})), (element, part) => {
      set(element, { class: `part part-${part.kind}`, style: { "flex-grow": String(part.us / total) } });
      set(/** @type {Element} */ (element.firstElementChild), { text: wide(part) ? said(part) : "" });
    });
    set(this.bar, { "aria-label": parts.map(said).join(", ") });
    set(this.small, { text: parts.filter((part) => !wide(part)).map((part) => said(part).replace(": ", " ")).join(", ") });
    set(this.who, { text: `${failover.from ? `${failover.from} → ` : ""}${failover.to}, term ${failover.term}${failover.why ? `: ${failover.why}` : ""}` });
    set(this.advice, { text: failover.advice ?? "" });
  }
}

/** @param {Failover["parts"][number]} part */
const said = (part) => `${part.name}: ${length(part.us)}`;
