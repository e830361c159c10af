/** The sentence: the present state, its reason, and what comes next. Also the text for an unknown state. */

import { button, h, keyed, set } from "../dom.js";
import { sentenceAt } from "../model/scene.js";

/**
 * @typedef {object} Known
 * @property {string} connection @property {import("../model/scene.js").ClusterState | undefined} state
 * @property {import("../model/scene.js").Timeline} timeline @property {number} now @property {number} lostAt by the page's clock
 */

/** A member that has been starting for this long is mentioned. */
const LATE = 5_000_000;

export class Said {
  /** @param {import("../main.js").App} app @param {(name: string) => void} restart */
  constructor(app, restart) {
    this.app = app;
    this.restart = restart;
    this.first = h("h1", {});
    this.second = h("p", { class: "lead" });
    this.third = h("p", { class: "lead" });
    this.problems = h("ul", { class: "problems" });
    this.elsewhere = h("p", { class: "buttons elsewhere" }, app.views.filter(({ name }) => name !== "live").map(({ name, title }) => h("a", { class: "button", href: `#/${name}` }, title)));
    this.element = h("div", { class: "said" }, this.first, this.second, this.third, this.elsewhere, this.problems);
    this.key = "";
  }

  /** @param {Known} known */
  show(known) {
    const { first, second, third, bad } = this.words(known);
    set(this.first, { text: first, class: bad ? "bad" : null });
    this.elsewhere.hidden = known.connection !== "no key" && known.connection !== "ended";
    const key = JSON.stringify([second, third]);
    if (key !== this.key) {
      this.key = key;
      this.second.replaceChildren(...emphasized(second));
      this.third.replaceChildren(...emphasized(third));
    }
    const late = (/** @type {import("../model/scene.js").ClusterMember} */ member) => member.state === "failed" || (member.state === "starting" && known.now - member.since_us > LATE);
    const failed = known.connection === "open" ? known.state?.members.filter(late) ?? [] : [];
    keyed(this.problems, failed, ({ name }) => name, ({ name }) => h("li", { class: "problem" }, h("p", {}, h("strong", {}, `${name} has not started. `), h("code", {})),
      this.app.host === "lab" && button("Try again", () => this.restart(name), { class: "tiny" })), (item, member) => {
      const text = item.querySelector("code");
      if (text) set(text, { text: member.log_tail ?? "" });
    });
  }

  /** @param {Known} known @returns {{ first: string, second: string, third: string, bad: boolean }} */
  words({ connection, state, timeline, now, lostAt }) {
    const node = this.app.host === "node";
    if (connection === "no key") {
      return { first: "This page was opened without its key", second: "Use the address that `doyen lab` printed: its end, after #k=, is the key to the cluster.", third: "The rest of the lab works without it:", bad: false };
    }
    if (connection === "ended") return { first: node ? "The node has stopped" : "The lab has stopped", second: node ? "Start it again with `doyen node`." : "Start it again with `doyen lab`. What follows is the last known state.", third: "", bad: false };
    if (connection === "lost") {
      const gone = (performance.now() - lostAt) * 1000;
      const last = state ? `Last known: ${state.sentence.first}.` : node ? "The node does not answer." : "The lab does not answer. Start it with `doyen lab`.";
      return { first: `Connection lost ${Math.floor(gone / 1e6)} s ago; trying again`, second: last, third: state ? "Leases on this page end at their deadlines, whatever has happened since." : "", bad: true };
    }
    if (!state) return { first: node ? "Asking this node…" : "Starting the nodes…", second: "", third: "", bad: false };
    return sentenceAt(state, timeline, now);
  }
}

/** Commands in backquotes are code; what was measured is strong. @param {string} text @returns {Node[]} */
export function emphasized(text) {
  return text.split(/(`[^`]+`|Downtime [^.]+(?:\.\d+[^.]*)?\.)/).filter(Boolean).map((part) => {
    if (part.startsWith("`")) return h("code", {}, part.slice(1, -1));
    return part.startsWith("Downtime ") ? h("strong", {}, part) : document.createTextNode(part);
  });
}

