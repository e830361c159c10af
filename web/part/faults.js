/**
 * Actions on the running cluster: faults, and an operator's commands. Each reports afterwards what was done, and offers
 * the way back where there is one.
 */

import { button, h } from "../dom.js";
import { isCut, isUp, leaderOf } from "../model/scene.js";
import { showMenu } from "./commands.js";
import { showPopover } from "./popover.js";

/**
 * @typedef {import("../model/scene.js").ClusterState} ClusterState
 * @typedef {import("../model/scene.js").ClusterMember} ClusterMember
 * @typedef {import("./commands.js").Command} Command
 */

/** What buttons say when the pointer rests on them. */
export const TIPS = {
  kill: "Kill -9: the process ends at once, without a message to the others",
  pause: "Pause: the process stops (SIGSTOP), but its machine runs; when the process continues, time has passed",
  continue: "Continue: the process runs again (SIGCONT)",
  restart: "Restart: a new process of the same member, with its files",
  transfer: "Transfer: the leader transfers leadership to a member of your choice, without a failure",
  drain: "Drain: it transfers leadership, and takes none until it is undrained",
  priority: "Priority: of the members that can lead, the one with the highest priority leads",
};

export class Faults {
  /** @param {import("../main.js").App} app @param {import("./hint.js").Hint} hint */
  constructor(app, hint) {
    this.app = app;
    this.hint = hint;
    /** Where a menu opens if no button was pressed. @type {() => { x: number, y: number }} */
    this.anchor = () => ({ x: innerWidth / 2, y: innerHeight / 2 });
  }

  get cluster() {
    return /** @type {import("../engine/cluster.js").Cluster} */ (this.app.cluster);
  }

  /** @returns {ClusterState} */
  get state() {
    return this.cluster.last.cluster;
  }

  /** @param {"fault" | "admin"} path @param {object} body @param {string} tried @param {{ title: string, run: () => void }} [back] */
  async send(path, body, tried, back) {
    try {
      const accepted = await this.cluster.send(path, body);
      this.hint.did(tried);
      this.app.toast(sentence(accepted), back);
    } catch (error) {
      this.app.toast(error instanceof TypeError ? "The lab does not answer." : String(/** @type {Error} */ (error).message));
    }
  }

  /** @param {string} name */
  kill(name) {
    return this.send("fault", { kill: name }, "kill", { title: "Restart  R", run: () => this.restart([name]) });
  }

  /** @param {string} name */
  pause(name) {
    return this.send("fault", { pause: name }, "pause", { title: "Continue  Z", run: () => this.proceed(name) });
  }

  /** @param {string} name */
  proceed(name) {
    return this.send("fault", { continue: name }, "continue");
  }

  /** @param {string[]} names */
  async restart(names) {
    for (const name of names) await this.send("fault", { restart: name }, "restart");
  }

  /** @param {string} a @param {string} b @param {boolean} oneWay */
  cut(a, b, oneWay) {
    return this.send("fault", { cut: [a, b], both: !oneWay }, "cut", { title: "Mend", run: () => this.mend(a, b, !oneWay) });
  }

  /** @param {string} a @param {string} b @param {boolean} both */
  mend(a, b, both) {
    return this.send("fault", { mend: [a, b], both }, "heal");
  }

  /** @param {string[][]} groups */
  partition(groups) {
    return this.send("fault", { partition: groups }, "partition", { title: "Heal all  H", run: () => this.heal() });
  }

  heal() {
    return this.send("fault", { heal: true }, "heal");
  }

  /** @param {ClusterMember} member */
  drain(member) {
    return this.send("admin", member.drained ? { undrain: member.name } : { drain: member.name }, "drain");
  }

  /** Asks for the receiver of leadership. @param {{ x: number, y: number }} [at] */
  transfer(at = this.anchor()) {
    const leader = leaderOf(this.state);
    const commands = this.state.members.filter((member) => member.name !== leader?.name).map((member) => ({
      title: member.name, off: !isUp(member) || !member.eligible || member.drained || member.witness,
      run: () => void this.send("admin", { transfer: member.name }, "transfer"),
    }));
    showMenu(commands, at, leader ? `${leader.name} transfers leadership to` : "There is no leader that could transfer leadership");
  }

  /** Asks for the number. @param {ClusterMember} member @param {{ x: number, y: number }} [at] */
  priority(member, at = this.anchor()) {
    const input = /** @type {HTMLInputElement} */ (h("input", { type: "number", value: member.priority, "aria-label": "Priority", step: 1 }));
    const apply = () => {
      popover.close();
      if (input.value !== "") this.send("admin", { priority: [member.name, Math.trunc(Number(input.value))] }, "priority");
    };
    input.addEventListener("keydown", (event) => event.key === "Enter" && apply());
    const popover = showPopover(at, `Priority of ${member.name}`, [
      h("p", { class: "small" }, `Priority of ${member.name}: of the members that can lead, the one with the highest priority leads.`),
      h("div", { class: "buttons" }, input, button("Set", apply, { class: "primary" })),
    ]);
    input.select();
  }

  /** What can be done to one member. @param {ClusterMember} member @returns {(Command & { tip?: string, name: string })[]} */
  of(member) {
    const up = isUp(member) || member.state === "paused";
    const leads = leaderOf(this.state)?.name === member.name;
    return [
      ...(up ? [{ name: "kill", key: "Shift+K", title: "Kill -9", run: () => void this.kill(member.name), tip: TIPS.kill }] : []),
      ...(up ? [] : [{ name: "restart", key: "R", title: member.state === "failed" ? "Try again" : "Restart", off: member.state === "starting", run: () => void this.restart([member.name]), tip: TIPS.restart }]),
      member.state === "paused"
        ? { name: "continue", key: "Z", title: "Continue", run: () => void this.proceed(member.name), tip: TIPS.continue }
        : { name: "pause", key: "Z", title: "Pause", off: !up, run: () => void this.pause(member.name), tip: TIPS.pause },
      leads
        ? { name: "transfer", key: "T", title: "Transfer…", run: () => this.transfer(), tip: TIPS.transfer }
        : { name: "transfer", title: "Make leader", off: !leaderOf(this.state) || !isUp(member) || !member.eligible || member.drained, run: () => void this.send("admin", { transfer: member.name }, "transfer"), tip: TIPS.transfer },
      { name: "drain", key: "D", title: member.drained ? "Undrain" : "Drain", off: !isUp(member), run: () => void this.drain(member), tip: TIPS.drain },
      { name: "priority", key: "V", title: "Priority…", off: !isUp(member), run: () => this.priority(member), tip: TIPS.priority },
    ];
  }

  /** The links of one member, for its menu. @param {ClusterMember} member @returns {Command[]} */
  links(member) {
    return this.state.members.filter((other) => other.name !== member.name).map((other) => {
      const cut = isCut(this.state, member.name, other.name) || isCut(this.state, other.name, member.name);
      return { title: `${cut ? "Mend" : "Cut"} the link to ${other.name}`, run: () => void (cut ? this.mend(member.name, other.name, true) : this.cut(member.name, other.name, false)) };
    });
  }
}

/** With a capital and a full stop, and without the marks of code. @param {string} said */
function sentence(said) {
  const text = said.replaceAll("`", "");
  if (!text) return "Done.";
  const whole = /[.…?]$/.test(text) ? text : `${text}.`;
  // Names of members keep their letters.
  return /^[a-z]+[ :]/.test(whole) ? whole[0].toUpperCase() + whole.slice(1) : whole;
}
