/** Navigation in a run: selecting, walking through causes. Each action changes the address. Simulate and Check share it. */

import { withPosition } from "../model/address.js";
import { neighbour } from "../model/reason.js";
import { withOwn } from "../url.js";

/**
 * @typedef {import("../url.js").Query} Query
 * @typedef {object} Looked a view that shows a run
 * @property {import("../main.js").App} app @property {Query} query @property {import("../model/run.js").Run | null} run
 * @property {import("./stage.js").Stage} stage @property {boolean} isCurrent whether the run on screen is that of the address
 */

export class Look {
  /** @param {Looked} view */
  constructor(view) {
    this.looked = view;
  }

  get player() {
    return this.looked.stage.player;
  }

  /** The address of what is on screen now; that in the bar may be a quarter of a second behind. @returns {Query} */
  here() {
    const { run, query, isCurrent } = this.looked;
    return run && isCurrent ? withPosition(query, run, this.player.position) : query;
  }

  /** @param {string | null} selection */
  select(selection) {
    if (selection !== this.looked.stage.selection) this.looked.app.navigate(withOwn(this.here(), { sel: selection }));
  }

  /** Shows a step and selects it. @param {number} i */
  visit(i) {
    const { run, stage, app } = this.looked;
    if (!run) return;
    const sel = `s${i}`;
    if (stage.selection === sel) return stage.draw();
    this.player.pause(false);
    app.navigate(withPosition(withOwn(this.looked.query, { sel }), run, run.atStep(i + 1)));
  }

  /** To the cause of what is selected, or to what came of it. @param {1 | -1} way */
  walk(way) {
    const { run, stage, app } = this.looked;
    if (!run) return;
    const { position } = this.player;
    const from = stage.selection ? run.stepOf(stage.selection, position) : position.s > 0 ? position.s - 1 : null;
    if (from === null) return;
    const to = neighbour(run, from, way);
    if (to === null) return app.toast(way < 0 ? "Nothing before it: this is where it began." : "Nothing came of it.");
    this.visit(to);
  }
}

/** Writes the position into the address while it changes: at most four times a second, and when it rests. */
export class Follower {
  /** @param {() => void} write */
  constructor(write) {
    this.write = write;
    this.written = 0;
    this.waiting = 0;
  }

  /** @param {boolean} settled */
  follow(settled) {
    const wait = this.written + 250 - performance.now();
    clearTimeout(this.waiting);
    if (settled || wait <= 0) this.now();
    else this.waiting = setTimeout(() => this.now(), wait);
  }

  now() {
    this.written = performance.now();
    this.write();
  }

  stop() {
    clearTimeout(this.waiting);
  }
}
