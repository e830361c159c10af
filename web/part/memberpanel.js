/** One member of the running cluster: its state, and the actions on it. */

import { button, h, keyed, set } from "../dom.js";
import { memberSign } from "../draw/signs.js";
import { leaseLeft, penaltyWords } from "../model/scene.js";
import { ago, micros } from "../model/words.js";
import { emphasized } from "./said.js";

/** @typedef {import("../model/scene.js").ClusterMember} ClusterMember */

/** What a word means, where the pointer rests on it. */
const MEANINGS = {
  lease: "Lease: until then this leader may act without asking again",
  term: "Term: counts leaderships",
  priority: "Of the members that can lead, the one with the highest priority leads",
  penalty: "A leader that fails ranks behind the other members for a time, whatever its priority",
  process: "The process of this member, and where it listens",
};

export class MemberPanel {
  /** @param {import("./faults.js").Faults | null} faults none on a node's own page */
  constructor(faults) {
    this.faults = faults;
    this.sign = h("span", { class: "member-sign" });
    this.name = h("h2", { class: "member-name" });
    this.role = h("span", { class: "soft" });
    this.facts = h("dl", { class: "facts" });
    this.buttons = h("div", { class: "buttons" });
    this.warnings = h("ul", { class: "warnings" });
    this.empty = h("p", { class: "empty" }, "Select a member to see what it holds.");
    this.element = h("section", { class: "member-panel", "aria-label": "Selected member" },
      h("div", { class: "member-head" }, this.sign, this.name, this.role), this.facts, this.warnings, this.buttons, this.empty);
    this.keys = { sign: "", buttons: "" };
  }

  /** @param {ClusterMember | null} member @param {number} now @param {{ leader: string | null, leases: boolean, stale: boolean }} known `stale`: nothing new is known */
  show(member, now, { leader, leases, stale }) {
    for (const part of [this.sign, this.name, this.role, this.facts, this.buttons, this.warnings]) part.hidden = !member;
    this.empty.hidden = Boolean(member);
    if (!member) return;
    const role = roleOf(member);
    const key = `${role} ${member.witness}`;
    if (key !== this.keys.sign) {
      this.keys.sign = key;
      this.sign.replaceChildren(memberSign(/** @type {any} */ (member.witness && role === "follower" ? "witness" : role)));
    }
    set(this.name, { text: member.name });
    set(this.role, { text: [role, member.drained && role !== "drained" && "drained", member.next && "next in line"].filter(Boolean).join(", ") });
    keyed(this.facts, factsOf(member, now, leader, leases), ([name]) => name, ([name]) =>
      h("div", { class: "fact" }, h("dt", { title: /** @type {any} */ (MEANINGS)[name] }, name), h("dd", {})), (fact, [, value]) =>
      set(/** @type {Element} */ (fact.lastElementChild), { text: value }));
    keyed(this.warnings, member.warnings, (text) => text, (text) => h("li", {}, emphasized(text)));
    this.drawButtons(member, stale);
  }

  /** @param {ClusterMember} member @param {boolean} stale */
  drawButtons(member, stale) {
    if (!this.faults) return;
    const commands = this.faults.of(member);
    const key = JSON.stringify([member.name, stale, commands.map(({ title, off }) => [title, off])]);
    if (key === this.keys.buttons) return;
    this.keys.buttons = key;
    const focused = document.activeElement?.getAttribute("data-name");
    const within = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(...commands.map((command) => {
      const run = () => {
        const box = element.getBoundingClientRect();
        if (this.faults) this.faults.anchor = () => ({ x: box.x, y: box.bottom + 4 });
        command.run();
      };
      const element = button(command.title, run, { class: "tiny", title: command.tip, disabled: command.off || stale, "data-name": command.name, "aria-keyshortcuts": command.key });
      return element;
    }));
    // Pause becomes Continue while it is pressed: the focus stays.
    if (within) /** @type {HTMLElement | null} */ (this.buttons.querySelector(`[data-name="${focused}"]`) ?? this.buttons.querySelector("button"))?.focus();
  }
}

/** @param {ClusterMember} member */
function roleOf(member) {
  if (member.state === "down" || member.state === "failed") return "down";
  if (member.state === "paused") return "paused";
  if (member.state === "starting" || member.state === "unknown") return "unknown";
  return member.role === "retiring" ? "leader" : member.role;
}

/** @param {ClusterMember} member @param {number} now @param {string | null} leader @param {boolean} leases @returns {[string, string][]} */
function factsOf(member, now, leader, leases) {
  /** @type {[string, string | null][]} */
  const facts = [
    ["lease", member.lease ? (now < member.lease.until_us ? `${leaseLeft(member.lease, now)} ms left of ${micros(member.lease.length_us)}` : member.lease.asked ? "asking" : "over") : null],
    ["follows", member.role !== "leader" && member.state === "up" && !member.seen ? member.leader ?? "no leader known" : null],
    ["term", member.term ? `${member.term}${leases && member.role === "leader" ? " (fencing token)" : ""}` : null],
    ["priority", `${member.priority}${member.eligible ? "" : ", not eligible"}`],
    ["penalty", member.penalty ? penaltyWords(member.penalty, now) : null],
    ["process", member.pid ? `pid ${member.pid}, ${member.address}` : member.address],
    ["state", member.state === "up" ? null : `${member.state === "failed" ? "has not started" : member.state} since ${ago(Math.max(0, now - member.since_us)).replace(" ago", "")}`],
    ["round trip", leader && leader !== member.name && member.rtt_us[leader] ? `${micros(member.rtt_us[leader])} to ${leader}` : null],
    ["starts", member.incarnation > 1 ? String(member.incarnation) : null],
  ];
  return /** @type {[string, string][]} */ (facts.filter(([, value]) => value !== null));
}
