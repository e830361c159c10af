/**
 * Plays a run: its position, whether it moves, and its speed. It knows nothing of the page; the view of the run is told when the
 * position has changed.
 *
 * `position` is where the run is. `shown` is what is on screen: while a step is being shown it lags by a fifth of a second,
 * so that the change is visible; the next key jumps to the end of it.
 */

import { isStill } from "../main.js";
import { timeScale } from "../model/scale.js";
import { Playback, STILL } from "./playback.js";

/** @typedef {import("../model/run.js").Position} Position */

/** How long the flight of a message takes at speed 1, in milliseconds. Long waits take that of two flights. */
export const FLIGHT = 600;

/** A scale whose folds are as long as two flights: its pixels are the ticks of play. */
const TICKS = 28;
const STEP = 180;

export class Player extends Playback {
  /** @param {{ changed: (settled: boolean) => void }} told `settled`: the position is one that should be in the address */
  constructor({ changed }) {
    super(changed);
    /** @type {import("../model/run.js").Run | null} */
    this.run = null;
    /** @type {import("../model/scale.js").TimeScale | null} */
    this.clock = null;
    /** @type {Position} */
    this.position = { s: 0, t: 0 };
    /** @type {Position} */
    this.shown = this.position;
    /** How often the loop of an endless run has been played. */
    this.rounds = 1;
    /** @type {{ from: Position, began: number } | null} */
    this.moving = null;
  }

  /** @param {import("../model/run.js").Run} run @param {import("../model/run.js").Run | null} beside another run on the same axis @param {Position} position */
  load(run, beside, position) {
    if (this.run !== run) this.rounds = 1;
    this.run = run;
    this.clock = timeScale(beside ? [run, beside] : [run], 0, { least: TICKS });
    this.place(position);
  }

  /** Sets the position without telling the view. @param {Position} position */
  place(position) {
    this.position = this.shown = position;
    this.moving = null;
  }

  /** When the run, or the one beside it, ends. */
  get end() {
    return this.clock?.end ?? 0;
  }

  get isAtEnd() {
    return this.run !== null && this.position.s >= this.run.length && this.position.t >= this.end;
  }

  /** Goes to a position: at once, or as one movement that takes a moment. @param {Position} position @param {{ slide?: boolean, settled?: boolean }} [how] */
  go(position, { slide = false, settled = true } = {}) {
    this.pause(false);
    const from = this.position;
    this.place(position);
    if (slide && !isStill() && from.t !== position.t) {
      this.shown = from;
      this.moving = { from, began: performance.now() };
      this.wake();
    }
    this.changed(settled);
  }

  /** @param {1 | -1} way */
  step(way) {
    if (!this.run) return;
    const { s, t } = this.position;
    const within = way < 0 && t > this.run.atStep(s).t; // in flight: back to the step before, and no further
    this.go(this.run.atStep(within ? s : s + way), { slide: true });
  }

  /** @param {1 | -1} way */
  moment(way) {
    if (this.run) this.go(this.run.moment(this.position, way), { slide: true });
  }

  toStart() {
    if (this.run) this.go(this.run.atStep(0));
  }

  toEnd() {
    if (this.run) this.go({ s: this.run.length, t: this.end });
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (!this.run) return;
    if (this.isAtEnd && !this.run.data.loop) this.place(this.run.atStep(0));
    this.playing = true;
    this.moving = null;
    this.shown = this.position;
    this.rest = isStill() ? STILL / 3 : 0;
    this.last = performance.now();
    this.wake();
    this.changed(false);
  }

  pause(tell = true) {
    if (!this.playing) return;
    this.playing = false;
    if (tell) this.changed(true);
  }

  get isMoving() {
    return this.moving !== null || this.playing;
  }

  /** @param {number} now */
  tick(now) {
    if (this.moving) this.slide(now);
    else if (this.playing) this.advance(now);
  }

  /** @param {number} now */
  slide(now) {
    const { from, began } = /** @type {NonNullable<Player["moving"]>} */ (this.moving);
    const done = Math.min(1, (now - began) / STEP);
    if (done >= 1) {
      this.shown = this.position;
      this.moving = null;
    } else {
      const t = from.t + (this.position.t - from.t) * (1 - (1 - done) ** 3);
      const [low, high] = [Math.min(from.s, this.position.s), Math.max(from.s, this.position.s)];
      const passed = /** @type {import("../model/run.js").Run} */ (this.run).atTime(t).s;
      this.shown = { s: Math.min(high, Math.max(low, passed)), t };
    }
    this.changed(false);
  }

  /** @param {number} now */
  advance(now) {
    const run = /** @type {import("../model/run.js").Run} */ (this.run);
    const passed = this.passed(now);
    if (isStill()) return this.advanceByMoments(run, passed);
    const clock = /** @type {import("../model/scale.js").TimeScale} */ (this.clock);
    const tick = clock.toX(this.position.t) + (passed / FLIGHT) * this.speed * clock.flight;
    if (tick < clock.width) this.place(atLeast(run.atTime(clock.toTime(tick)), this.position));
    else this.reachEnd(run);
    this.changed(!this.playing);
  }

  /** Without motion a moment is shown each second. @param {import("../model/run.js").Run} run @param {number} passed */
  advanceByMoments(run, passed) {
    if (!this.isDue(passed)) return;
    if (this.position.s < run.length) this.place(run.moment(this.position, 1));
    else this.reachEnd(run);
    this.changed(!this.playing);
  }

  /** At the end play stops; an endless run repeats its loop. @param {import("../model/run.js").Run} run */
  reachEnd(run) {
    const { loop } = run.data;
    if (loop) {
      this.rounds++;
      this.place(run.atStep(loop.from));
    } else {
      this.place({ s: run.length, t: this.end });
      this.playing = false;
    }
  }
}

/** Play never undoes a step, even where rounding would. @param {Position} next @param {Position} before @returns {Position} */
const atLeast = (next, before) => ({ s: Math.max(next.s, before.s), t: Math.max(next.t, before.t) });
