/** The events of the running cluster, the last first. */

import { h, keyed, set } from "../dom.js";
import { stamp } from "../model/scene.js";
import { list } from "../model/words.js";

/** @typedef {{ n: number, at_us: number, member: string | null, text: string, kind: string }} Line */

const SHOWN = 60;
/** Lines of several members that say the same within this time are one line. */
const TOGETHER = 50_000;
const KINDS = { leader: "who leads", fault: "faults", suspect: "lost contact", vote: "votes", operator: "commands", start: "starts" };

export class EventLog {
  /** @param {(at: number) => void} onTime */
  constructor(onTime) {
    this.onTime = onTime;
    this.filter = /** @type {HTMLSelectElement} */ (h("select", { class: "log-filter", "aria-label": "Show lines of" }));
    this.search = /** @type {HTMLInputElement} */ (h("input", { type: "search", class: "log-search", placeholder: "find", "aria-label": "Find in the log" }));
    this.list = h("ol", { class: "log-lines" });
    this.empty = h("p", { class: "empty" });
    this.element = h("details", { class: "event-log", open: true },
      h("summary", { class: "head" }, h("h2", {}, "Log")), h("div", { class: "log-tools" }, this.search, this.filter), this.list, this.empty);
    for (const control of [this.filter, this.search]) control.addEventListener("input", () => this.draw());
    /** @type {Line[]} */
    this.lines = [];
    this.names = "";
    /** @type {number | undefined} */
    this.epoch = undefined;
    this.key = "";
  }

  /** @param {Line[]} lines @param {string[]} names @param {number} [epoch_ms] the wall clock at time zero */
  show(lines, names, epoch_ms) {
    this.epoch = epoch_ms;
    if (names.join() !== this.names) {
      this.names = names.join();
      const value = this.filter.value;
      this.filter.replaceChildren(h("option", { value: "" }, "all members"),
        h("optgroup", { label: "Members" }, names.map((name) => h("option", { value: `member:${name}` }, name))),
        h("optgroup", { label: "Kinds" }, Object.entries(KINDS).map(([kind, title]) => h("option", { value: `kind:${kind}` }, title))));
      this.filter.value = value;
    }
    const key = `${lines.length} ${lines.at(-1)?.n}`;
    if (key === this.key) return;
    this.key = key;
    this.lines = lines;
    this.draw();
  }

  draw() {
    const [what, which] = this.filter.value.split(":");
    const words = this.search.value.toLowerCase();
    const fits = (/** @type {Line} */ line) =>
      (what !== "member" || line.member === which || new RegExp(`\\b${which}\\b`).test(`${line.member} ${line.text}`))
      && (what !== "kind" || line.kind === which) && `${line.member ?? ""} ${line.text}`.toLowerCase().includes(words);
    const fitting = merged(this.lines.filter(fits), new Set(this.names.split(","))).slice(-SHOWN).reverse();
    keyed(this.list, fitting, ({ n, members }) => `${n} ${members}`, (line) => this.make(line));
    this.empty.hidden = fitting.length > 0;
    set(this.empty, { text: this.lines.length ? "No line fits." : "Nothing has happened yet." });
  }

  /** @param {Line & { members: string[] }} line */
  make(line) {
    const several = line.members.length > 1;
    return h("li", { class: `log-line kind-${line.kind}` },
      h("button", { type: "button", class: "plain time", title: "Show this time", on: { click: () => this.onTime(line.at_us) } }, stamp(line.at_us, this.epoch)),
      h("span", {}, line.members.length > 0 && h("strong", {}, list(line.members)), line.members.length ? ` ${several ? plural(line.text) : line.text}` : line.text));
  }
}

/** The lines in order of time; what several members report at once is one line. @param {Line[]} lines @param {Set<string>} names @returns {(Line & { members: string[] })[]} */
function merged(lines, names) {
  /** @type {(Line & { members: string[] })[]} */
  const found = [];
  for (const raw of lines.toSorted((a, b) => a.at_us - b.at_us || a.n - b.n)) {
    // A text may name its subject itself: "n5 resumed leadership", as n1 tells it.
    const [first, ...rest] = raw.text.split(" ");
    const line = names.has(first) ? { ...raw, member: first, text: rest.join(" ") } : raw;
    const same = line.member ? found.slice(-8).find((one) => one.text === line.text && one.member && line.at_us - one.at_us < TOGETHER) : undefined;
    if (!same) found.push({ ...line, members: line.member ? [line.member] : [] });
    else if (line.member && !same.members.includes(line.member)) same.members = [...same.members, line.member].sort();
  }
  return found;
}

/** A sentence about one member, made plural. @param {string} text */
const plural = (text) => text.replace(/^(follow|vote|campaign|start|lose|know|stop)s\b/, "$1");
