/** The commands of Live, by keys, buttons and words. */

import { isUp, leaderOf } from "../model/scene.js";
import { list } from "../model/words.js";
import { TIPS } from "./faults.js";

/**
 * @typedef {import("./commands.js").Command} Command
 * @typedef {import("../model/scene.js").ClusterState} ClusterState
 * @typedef {object} LiveView what of the view the commands need
 * @property {() => ClusterState} state @property {(state: ClusterState) => string | null} selection @property {(id: string | null) => void} select
 * @property {(until: number | null) => void} showTime @property {number | null} until
 * @property {import("./faults.js").Faults | null} faults @property {import("./linktools.js").LinkTools | null} tools
 * @property {import("./hint.js").Hint} hint @property {() => void} fullScreen
 */

export class LiveCommands {
  /** @param {LiveView} view */
  constructor(view) {
    this.view = view;
  }

  /** All that is possible now. @returns {Command[]} */
  list() {
    const { view } = this;
    const state = view.state();
    if (view.tools?.tool) return view.tools.commands();
    if (!state) return [];
    return [...this.faultCommands(state), ...this.adminCommands(state), ...this.moves(state)];
  }

  /** The members that a key acts on. @param {ClusterState} state */
  targets(state) {
    const name = this.view.selection(state);
    const selected = state.members.find((member) => member.name === name) ?? null;
    const leader = leaderOf(state);
    const down = state.members.filter((member) => member.state === "down" || member.state === "failed");
    return { selected, leader, acted: selected ?? leader, down: selected && down.includes(selected) ? [selected] : down };
  }

  /** @param {ClusterState} state @returns {(Command & { tip?: string })[]} */
  faultCommands(state) {
    const { faults, tools } = this.view;
    if (!faults || !tools) return [];
    const { selected, leader, acted, down } = this.targets(state);
    const group = "Faults";
    const names = down.map(({ name }) => name);
    const paused = acted?.state === "paused" ? acted : selected ? null : state.members.find((member) => member.state === "paused") ?? null;
    const alive = (/** @type {import("../model/scene.js").ClusterMember | null} */ member) => member !== null && (isUp(member) || member.state === "paused");
    return [
      { key: "K", title: "Kill the leader", group, tip: TIPS.kill, off: !alive(leader), run: () => void (leader && faults.kill(leader.name)) },
      { key: "Shift+K", title: selected ? `Kill ${selected.name}` : "Kill the selected member", group, off: !alive(selected), run: () => void (selected && faults.kill(selected.name)) },
      { key: "P", title: "Partition", group, tip: "Partition the members into two groups that do not reach each other", run: () => tools.begin("partition") },
      { key: "C", title: "Cut a link", group, tip: "Nothing passes between two members any more", run: () => tools.begin("cut", { chosen: selected ? [selected.name] : [] }) },
      { key: "Shift+C", title: "Cut a link one way", group, run: () => tools.begin("cut", { oneWay: true, chosen: selected ? [selected.name] : [] }) },
      paused
        ? { key: "Z", title: `Continue ${paused.name}`, group, tip: TIPS.continue, run: () => void faults.proceed(paused.name) }
        : { key: "Z", title: selected ? `Pause ${selected.name}` : "Pause", group, tip: TIPS.pause, off: !alive(acted), run: () => void (acted && faults.pause(acted.name)) },
      { key: "R", title: names.length ? `Restart ${names.length > 3 ? `${names.length} members` : list(names)}` : "Restart", group, tip: TIPS.restart, off: !names.length, run: () => void faults.restart(names) },
      { key: "H", title: "Heal all", group, tip: "All links are whole again", off: !state.cuts.length && !state.partition, run: () => void faults.heal() },
    ];
  }

  /** @param {ClusterState} state @returns {Command[]} */
  adminCommands(state) {
    const { faults } = this.view;
    if (!faults) return [];
    const { leader, acted } = this.targets(state);
    const group = "Operator";
    return [
      { key: "T", title: "Transfer to …", group, off: !leader, run: () => faults.transfer() },
      { key: "D", title: acted?.drained ? `Undrain ${acted.name}` : acted ? `Drain ${acted.name}` : "Drain", group, off: !acted || !isUp(acted), run: () => void (acted && faults.drain(acted)) },
      { key: "V", title: "Priority …", group, off: !acted || !isUp(acted), run: () => acted && faults.priority(acted) },
    ];
  }

  /** @param {ClusterState} state @returns {Command[]} */
  moves(state) {
    const { view } = this;
    const names = state.members.map(({ name }) => name);
    const go = (/** @type {number} */ step) => {
      const here = names.indexOf(view.selection(state) ?? "");
      view.select(here < 0 ? names[step > 0 ? 0 : names.length - 1] : names[(here + step + names.length) % names.length]);
    };
    const escape = () => {
      if (view.selection(state)) view.select(null);
      else if (view.until !== null) view.showTime(null);
      else view.hint.end();
    };
    return [
      { key: "→", title: "Next member", run: () => go(1) },
      { key: "←", title: "Member before", run: () => go(-1) },
      { key: "F", title: "Full screen", run: () => view.fullScreen() },
      { key: "Esc", title: view.selection(state) ? "Deselect" : view.until !== null ? "Back to now" : "No more hints", off: !view.selection(state) && view.until === null && !view.hint.isOn, run: escape },
    ];
  }

  /** Those that have a button below the picture. @param {ClusterState} state */
  buttons(state) {
    return this.faultCommands(state).filter(({ key, off }) => ["K", "P", "C", "Z"].includes(key ?? "") || (["R", "H"].includes(key ?? "") && !off));
  }
}
