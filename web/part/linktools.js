/**
 * Cutting a link and partitioning the members without a mouse: choose members one by one. While a tool is active the keys are its
 * own, and clicks choose.
 */

import { button, h, set } from "../dom.js";
import { sayGroups } from "../model/scene.js";

/**
 * @typedef {import("../model/scene.js").ClusterState} ClusterState
 * @typedef {import("./commands.js").Command} Command
 * @typedef {{ kind: "cut" | "partition", chosen: string[], oneWay: boolean }} Tool
 */

export class LinkTools {
  /** @param {{ faults: import("./faults.js").Faults, focus: (step: 1 | -1) => void, changed: () => void }} parts */
  constructor({ faults, focus, changed }) {
    this.faults = faults;
    this.focus = focus;
    this.changed = changed;
    /** @type {Tool | null} */
    this.tool = null;
    this.text = h("p", { class: "small" });
    this.apply = button("Part them", () => this.finish(), { class: "primary", key: "Enter" });
    this.way = button("One way", () => this.toggleWay(), { "aria-pressed": "false" });
    this.cancel = button("Cancel", () => this.end(), { key: "Esc" });
    this.dragged = "";
    this.element = h("div", { class: "link-tools buttons", role: "group", "aria-label": "Tool", hidden: true },
      this.text, this.apply, this.way, this.cancel);
  }

  /** What a drag on the picture would do, while it lasts. @param {string} text */
  say(text) {
    if (text === this.dragged) return;
    this.dragged = text;
    this.changed();
  }

  /** Whether it takes the place of the buttons. */
  get isActive() {
    return this.tool !== null || this.dragged !== "";
  }

  /** @param {Tool["kind"]} kind @param {{ oneWay?: boolean, chosen?: string[] }} [how] */
  begin(kind, { oneWay = false, chosen = [] } = {}) {
    this.tool = { kind, chosen, oneWay };
    this.changed();
    this.focus(1);
  }

  end() {
    this.tool = null;
    this.changed();
  }

  toggleWay() {
    if (this.tool) this.tool = { ...this.tool, oneWay: !this.tool.oneWay };
    this.changed();
  }

  /** A member was clicked or pressed. @param {string} id @returns {boolean} whether a tool has taken it */
  press(id) {
    const { tool } = this;
    if (!tool) return false;
    const chosen = tool.chosen.includes(id) ? tool.chosen.filter((one) => one !== id) : [...tool.chosen, id];
    this.tool = { ...tool, chosen };
    if (tool.kind === "cut" && chosen.length === 2) this.finish();
    else this.changed();
    return true;
  }

  finish() {
    const { tool } = this;
    if (!tool || !this.canFinish()) return;
    this.end();
    if (tool.kind === "cut") this.faults.cut(tool.chosen[0], tool.chosen[1], tool.oneWay);
    else this.faults.partition(this.groups(tool));
  }

  canFinish() {
    const { tool } = this;
    if (!tool) return false;
    return tool.kind === "cut" ? tool.chosen.length === 2 : tool.chosen.length > 0 && tool.chosen.length < this.faults.state.members.length;
  }

  /** @param {Tool} tool */
  groups(tool) {
    const names = this.faults.state.members.map(({ name }) => name);
    return [names.filter((name) => tool.chosen.includes(name)), names.filter((name) => !tool.chosen.includes(name))];
  }

  /** What the picture shows of it. @returns {{ groups: string[][], text: string } | null} */
  preview() {
    const { tool } = this;
    if (!tool) return null;
    return { groups: tool.kind === "cut" ? [tool.chosen] : this.canFinish() ? this.groups(tool) : [tool.chosen], text: "" };
  }

  draw() {
    const { tool } = this;
    set(this.element, { hidden: !this.isActive });
    for (const part of [this.apply, this.way, this.cancel]) part.hidden = !tool;
    if (!tool) return void set(this.text, { text: this.dragged });
    const text = tool.kind === "partition"
      ? this.canFinish() ? sayGroups(this.faults.state, this.groups(tool)) : "Choose the members of one side: arrow keys and Space, or click."
      : tool.chosen.length ? `Cut the link ${tool.oneWay ? "from" : "between"} ${tool.chosen[0]} ${tool.oneWay ? "to" : "and"} …` : `Choose ${tool.oneWay ? "the sender, then the receiver" : "two members"}.`;
    set(this.text, { text });
    set(this.apply, { hidden: tool.kind === "cut", disabled: !this.canFinish() });
    set(this.way, { hidden: tool.kind !== "cut", "aria-pressed": String(tool.oneWay) });
  }

  /** The keys of the tool. @returns {Command[]} */
  commands() {
    const group = "Tool";
    return [
      { key: "Enter", title: "Do it", group, off: !this.canFinish(), run: () => this.finish() },
      { key: "Esc", title: "Cancel", group, run: () => this.end() },
      { key: "→", title: "Next member", group, run: () => this.focus(1) },
      { key: "←", title: "Member before", group, run: () => this.focus(-1) },
    ];
  }
}
