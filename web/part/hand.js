/** The user's actions on a run in Simulate. Each action changes the address: the browser's Back is undo. */

import { edited } from "../model/address.js";
import { MOST, amend, branched, compareWith, flagWords } from "../model/branch.js";
import { list } from "../model/words.js";
import { print, source, withOwn } from "../url.js";
import { Look } from "./look.js";
import { closePopover } from "./popover.js";
import { isTooLong, pack } from "./share.js";
import { showChanges, showMessage } from "./whatif.js";

/** @typedef {import("../url.js").Query} Query */

export class Hand extends Look {
  /** @param {import("../view/simulate.js").Simulate} view */
  constructor(view) {
    super(view);
    this.view = view;
  }

  /** Goes to another scenario; one that does not fit into an address is packed. @param {Query} query */
  go(query) {
    const { app } = this.view;
    if (isTooLong(print(query))) app.follow(this.packed(query));
    else app.navigate(query);
  }

  /** @param {Query} query @returns {Promise<Query>} */
  async packed(query) {
    const { app, toml } = this.view;
    const explained = await app.simulation.explain(source(query, toml));
    return { ...withOwn(query, { z: await pack(explained.toml), vs: null }), path: "", flags: [] };
  }

  /** While a question is open, a member that is selected is the guess. @param {string | null} selection */
  select(selection) {
    if (!this.view.predict.choose(selection)) super.select(selection);
  }

  /** @param {import("./sentence.js").Edit} edit */
  edit(edit) {
    const query = edited(this.view.query, edit, this.view.explained?.sentence ?? []);
    this.player.pause(false);
    this.go(query);
    this.remember(query, flagWords(edit.flag, edit.value));
  }

  /** Changes history: the run branches. @param {[string, string][]} flags */
  change(flags) {
    const { query, app } = this.view;
    if (branched(query).length + flags.length > MOST) return app.toast(`${MOST} changes at most. Take one back, or make B the base.`);
    closePopover();
    this.player.pause(false);
    const next = flags.reduce((before, [flag, value]) => amend(before, flag, value), this.here());
    this.go(withOwn(next, { ask: null, view: query.own.view === "scale" ? null : query.own.view ?? null }));
    this.remember(next, list(branched(next).map(({ text }) => text)));
  }

  /** Keeps a scenario in this browser's gallery. @param {Query} query @param {string} what */
  async remember(query, what) {
    const { remember } = await import("./yours.js");
    remember(`${this.view.explained?.title ?? "Scenario"}; ${what}`, print(query));
  }

  /** The present branch becomes the run that others are compared with. */
  makeBase() {
    this.go(withOwn(this.here(), { vs: null }));
  }

  /** Chooses the run beside it: the one with this many of the changes. @param {number} keep */
  compareWith(keep) {
    this.view.app.navigate(compareWith(this.here(), keep));
  }

  /** Chooses the pictures. @param {string} view */
  look(view) {
    const { app, query } = this.view;
    app.navigate(withOwn(this.here(), { view: view === "split" ? null : view, n: view === "scale" ? query.own.n ?? null : null }));
  }

  /** Opens the question before the run, or closes it. @param {boolean} on */
  ask(on) {
    const { predict, app, query } = this.view;
    predict.reset();
    this.player.pause(false);
    const next = withOwn(this.here(), { ask: on ? "1" : null, vs: on ? null : query.own.vs ?? null, sel: null, view: null });
    app.navigate(on ? withOwn(next, { s: null, t: null }) : next);
  }

  /** The box at a message in flight. @param {number} id @param {{ x: number, y: number }} at */
  openMessage(id, at) {
    const { run, query } = this.view;
    if (!run || query.own.ask) return;
    this.player.pause();
    this.select(`m${id}`);
    showMessage(run, id, this.player.position, at, (...flags) => this.change(flags));
  }

  /** What can be done to something. @param {string | null} selection @param {{ x: number, y: number }} at */
  openMenu(selection, at) {
    const { run, query, stage } = this.view;
    if (!run || query.own.ask) return;
    this.player.pause();
    showChanges(stage, selection ?? stage.selection, at, { change: (...flags) => this.change(flags), select: (it) => this.select(it) });
  }
}
