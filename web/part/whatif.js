/**
 * What if: changes of history at this instant. Buttons, the box at a message in flight, menus and keys all offer the same
 * list of commands, made here.
 */

import { button, h, region } from "../dom.js";
import { fate, kindOf } from "../model/reason.js";
import { faultTime, flagTime, messageChanges } from "../model/branch.js";
import { isHolding } from "../model/run.js";
import { time } from "../model/words.js";
import { showMenu } from "./commands.js";
import { showPopover } from "./popover.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/run.js").Position} Position
 * @typedef {import("./commands.js").Command} Command
 * @typedef {(...flags: [string, string][]) => void} Change
 */

const KEYS = /** @type {Record<string, string>} */ ({ drop: "Del", late: ",", twice: "." });

const MOST_OFFERED = 6;

/** The messages under way, without those that keep contact. @param {Run} run @param {Position} position */
function flying(run, position) {
  return run.inFlight(position).filter(({ lost, copy, message }) => !lost && !copy && !run.kinds[message.kind].background).map(({ message }) => message);
}

/** What can be done to a message that is under way. @param {Run} run @param {number} id @param {Position} position @param {Change} change @returns {Command[]} */
export function messageCommands(run, id, position, change) {
  const message = run.byId.get(id);
  if (!message) return [];
  const under = run.inFlight(position).some((flight) => flight.message.id === id && !flight.lost);
  return messageChanges(run, message).map(({ flag, value, title }) => ({
    key: KEYS[flag], title, group: "What if", off: !under, run: () => change([flag, value]),
  }));
}

/** What can be done to a member. @param {Run} run @param {number} id @param {Position} position @param {Change} change @returns {Command[]} */
export function memberCommands(run, id, position, change) {
  const state = run.frame(position.s).get(id);
  if (!state) return [];
  const flag = state.up ? "crash" : "restart";
  const title = `${state.up ? "Crash" : "Restart"} ${run.name(id)}`;
  return [{ key: "X", title, group: "What if", run: () => change([flag, `${id}@${flagTime(faultTime(run, position))}`]) }];
}

/** For a selection: a member, a message, or a step (of its member). @param {Run} run @param {string | null} selection @param {Position} position @param {Change} change @returns {Command[]} */
export function changeCommands(run, selection, position, change) {
  if (!selection) return [];
  if (selection.startsWith("m")) return messageCommands(run, Number(selection.slice(1)), position, change);
  const id = selection.startsWith("s") ? run.steps[Number(selection.slice(1))]?.member ?? null : Number(selection);
  return id === null ? [] : memberCommands(run, id, position, change);
}

/** The box at a message in flight. @param {Run} run @param {number} id @param {Position} position @param {{ x: number, y: number }} at @param {Change} change */
export function showMessage(run, id, position, at, change) {
  const message = run.byId.get(id);
  if (!message) return;
  const title = `${kindOf(run, message)} ${run.name(message.from)} → ${run.name(message.to)}`;
  const box = showPopover({ ...at, above: true }, title, [
    h("p", {}, h("strong", {}, kindOf(run, message)), ` ${run.name(message.from)} → ${run.name(message.to)}`),
    h("p", { class: "note" }, arrival(run, id, position)),
    h("div", { class: "buttons" }, messageCommands(run, id, position, (...what) => { box.close(); change(...what); })
      .map((command) => button(command.title.replace(/ by .*/, ""), command.run, { class: "tiny", disabled: command.off, title: `${command.title} (${command.key})` }))),
  ], { name: "flight" });
}

/** @param {Run} run @param {number} id @param {Position} position */
function arrival(run, id, position) {
  const message = run.byId.get(id);
  const { s, t } = position;
  if (message && message.arrives !== null && message.by < s && (message.at === null || message.at >= s)) return `arrives in ${time(Math.max(0, message.arrives - t))}`;
  return fate(run, id, position);
}

/**
 * The same as a menu, for a right click, a long press or a key.
 * @param {import("./stage.js").Stage} stage @param {string | null} of a selection; null: whatever there is at this instant
 * @param {{ x: number, y: number }} at @param {{ change: Change, select(selection: string): void }} told
 */
export function showChanges(stage, of, at, { change, select }) {
  const { run } = /** @type {import("./stage.js").Loaded} */ (stage.loaded);
  const { position } = stage.player;
  const found = changeCommands(run, of, position, change);
  const drops = flying(run, position).slice(0, MOST_OFFERED).map((message) => ({
    title: `Drop ${kindOf(run, message)} ${run.name(message.from)} → ${run.name(message.to)}`, run: () => change(["drop", message.ref]),
  }));
  const commands = [
    ...(of && of !== stage.selection ? [{ title: "Show why", run: () => select(of) }] : []),
    ...found,
    ...(found.length ? [] : [...(stage.side.whatif?.offered(run, null, position) ?? []), ...drops]),
  ];
  if (commands.length) showMenu(commands, at, of ? stage.nameOf(of) : "What if, at this instant");
}

export class WhatIf {
  /** @param {{ onChange: Change, onSelect(selection: string): void, onGo(position: Position): void }} told */
  constructor({ onChange, onSelect, onGo }) {
    this.onGo = onGo;
    this.onChange = onChange;
    this.onSelect = onSelect;
    this.buttons = h("div", { class: "buttons" });
    this.note = h("p", { class: "note" });
    this.element = region("What if", { class: "whatif" }, this.buttons, this.note);
    this.drawn = "";
  }

  /** @param {Run} run @param {string | null} selection @param {Position} position */
  show(run, selection, position) {
    const messages = flying(run, position);
    const key = [run.data.hash, selection, position.s, messages.map(({ id }) => id)].join(" ");
    if (key === this.drawn) return;
    this.drawn = key;
    // The buttons act at the time when they are pressed.
    this.position = position;
    const commands = this.offered(run, selection, position);
    this.buttons.replaceChildren(...commands.map((command) => button(command.title, command.run, { class: "tiny", disabled: command.off, title: command.key ? `${command.title} (${command.key})` : null })),
      messages.length && !selection?.startsWith("m") ? this.pick(run, messages) : "");
    const absent = commands.some(({ off }) => off) ? run.byId.get(Number(selection?.slice(1))) : undefined;
    if (absent) {
      const sent = run.atStep(absent.by + 1);
      const when = sent.t === position.t ? "it is sent in a later step of this instant" : `it ${absent.by < position.s ? "was" : "is"} sent at ${time(sent.t)}`;
      this.note.replaceChildren(`Not in flight at ${time(position.t)}; ${when}. `, button("Go there", () => this.onGo(sent), { class: "tiny" }));
    } else this.note.textContent = commands.length || messages.length
      ? "At this instant. Each opens a branch beside this run."
      : "Select a message or a member to change what happens to it.";
  }

  /** Buttons stay while the time runs; what they do is of the time when they are pressed. @param {Position} position */
  move(position) {
    this.position = position;
  }

  /** What the selection allows; without one, what is most telling: the leader's crash, a restart. @param {Run} run @param {string | null} selection @param {Position} position @returns {Command[]} */
  offered(run, selection, position) {
    const now = () => this.position ?? position;
    const late = (/** @type {string} */ of) => changeCommands(run, of, position, () => {}).map((command, place) => ({
      ...command, run: () => changeCommands(run, of, now(), this.onChange)[place]?.run(),
    }));
    const chosen = selection ? late(selection) : [];
    if (selection?.startsWith("m")) return chosen;
    const states = [...run.frame(position.s).values()];
    const leader = states.find((state) => state.up && isHolding(state.role)) ?? states.find((state) => state.up && ["candidate", "waiting"].includes(state.role))
      ?? states.find((state) => state.up && state.id === run.steps[position.s]?.member);
    const down = states.find((state) => !state.up);
    const others = [leader, down].flatMap((state) => (state ? late(String(state.id)) : [])).map(({ key: _, ...command }) => command);
    return [...chosen, ...others.filter((other) => (chosen.length ? other.title.startsWith("Restart") : true) && !chosen.some(({ title }) => title === other.title))];
  }

  /** @param {Run} run @param {import("../model/run.js").Message[]} messages */
  pick(run, messages) {
    const at = button("A message …", () => {
      const { left, bottom } = at.getBoundingClientRect();
      showMenu(messages.slice(0, 16).map((message) => ({
        title: `${kindOf(run, message)} ${run.name(message.from)} → ${run.name(message.to)}`, run: () => this.onSelect(`m${message.id}`),
      })), { x: left, y: bottom + 4 }, "Choose a message in flight");
    }, { class: "tiny", "aria-haspopup": "menu" });
    return at;
  }
}
