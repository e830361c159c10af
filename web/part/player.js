/**
 * Plays a run: where it is, whether it moves, how fast. It knows nothing of the page; whoever shows the run is told when the
 * position has changed.
 *
 * `position` is where the run is. `shown` is what is on screen: while a step is being shown it lags by a fifth of a second,
 * so that one sees where it went; the next key jumps to the end of it.
 */

import { isStill } from "../main.js";
import { timeScale } from "../model/scale.js";

/** @typedef {import("../model/run.js").Position} Position */

/** How long the flight of a message takes at speed 1, in milliseconds. Long waits take that of two flights. */
export const FLIGHT = 600;

/** A scale whose folds are as long as two flights: its pixels are the ticks of play. */
const TICKS = 28;
const STEP = 180;
const STILL = 1000;

export class Player {
  /** @param {{ changed: (settled: boolean) => void }} told `settled`: the position is one that should be in the address */
  constructor({ changed }) {
    this.changed = changed;
    /** @type {import("../model/run.js").Run | null} */
    this.run = null;
    /** @type {import("../model/scale.js").TimeScale | null} */
    this.clock = null;
    /** @type {Position} */
    this.position = { s: 0, t: 0 };
    /** @type {Position} */
    this.shown = this.position;
    this.playing = false;
    this.speed = 1;
    /** How often a run without end has gone round. */
    this.rounds = 1;
    /** @type {{ from: Position, began: number } | null} */
    this.moving = null;
    this.frame = 0;
    this.last = 0;
    this.rest = 0;
  }

  /** @param {import("../model/run.js").Run} run @param {import("../model/run.js").Run | null} beside another run on the same axis @param {Position} position */
  load(run, beside, position) {
    if (this.run !== run) this.rounds = 1;
    this.run = run;
    this.clock = timeScale(beside ? [run, beside] : [run], 0, { least: TICKS });
    this.place(position);
  }

  /** Sets the position without a word to anyone. @param {Position} position */
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

  /** Goes somewhere: at once, or as one movement that takes a moment. @param {Position} position @param {{ slide?: boolean, settled?: boolean }} [how] */
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

  /** @param {number} factor */
  changeSpeed(factor) {
    this.speed = Math.min(16, Math.max(1 / 16, this.speed * factor));
    this.changed(true);
  }

  /** Ends all movement; the view is left. */
  stop() {
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  /** The one loop of this page's pictures. It ends when nothing moves; the browser holds it while the page is hidden. */
  wake() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  /** @param {number} now */
  tick(now) {
    this.frame = 0;
    if (this.moving) this.slide(now);
    else if (this.playing) this.advance(now);
    if (this.moving || this.playing) this.wake();
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
    // A page that was hidden does not catch up.
    const passed = Math.min(100, now - this.last);
    this.last = now;
    if (isStill()) return this.advanceByMoments(run, passed);
    const clock = /** @type {import("../model/scale.js").TimeScale} */ (this.clock);
    const tick = clock.toX(this.position.t) + (passed / FLIGHT) * this.speed * clock.flight;
    if (tick < clock.width) this.place(atLeast(run.atTime(clock.toTime(tick)), this.position));
    else this.reachEnd(run);
    this.changed(!this.playing);
  }

  /** Without motion a moment is shown each second. @param {import("../model/run.js").Run} run @param {number} passed */
  advanceByMoments(run, passed) {
    this.rest += passed * this.speed;
    if (this.rest < STILL) return;
    this.rest = 0;
    if (this.position.s < run.length) this.place(run.moment(this.position, 1));
    else this.reachEnd(run);
    this.changed(!this.playing);
  }

  /** At the end play stops; a run without end goes round. @param {import("../model/run.js").Run} run */
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
