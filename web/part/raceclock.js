/** One clock for several runs. */

import { isStill } from "../main.js";

/** How long the flight of a message takes at speed 1, in milliseconds. */
export const FLIGHT = 300;
const STILL = 1000;

export class RaceClock {
  /** @param {{ changed: (settled: boolean) => void }} told */
  constructor({ changed }) {
    this.changed = changed;
    this.t = 0;
    this.end = 1;
    /** How long a flight is, by the runs' time. */
    this.flight = 1e6;
    /** Every time at which something happens in a lane. @type {number[]} */
    this.moments = [];
    this.playing = false;
    this.speed = 1;
    this.frame = 0;
    this.last = 0;
    this.rest = 0;
  }

  /** @param {import("../model/run.js").Run[]} runs @param {number} end */
  load(runs, end) {
    const times = runs.flatMap((run) => run.steps.filter((step) => !step.background).map((step) => step.at));
    this.moments = [...new Set([0, ...times, end])].filter((t) => t <= end).sort((a, b) => a - b);
    this.flight = Math.max(1, runs[0]?.d ?? 1e6);
    this.end = end;
    this.t = Math.min(this.t, end);
  }

  get isAtEnd() {
    return this.t >= this.end;
  }

  /** @param {number} t @param {boolean} [settled] */
  go(t, settled = true) {
    this.playing = false;
    this.t = Math.max(0, Math.min(t, this.end));
    this.changed(settled);
  }

  /** To the next or the last time at which something happens. @param {1 | -1} way */
  step(way) {
    const next = way > 0 ? this.moments.find((t) => t > this.t) : this.moments.findLast((t) => t < this.t);
    if (next !== undefined) this.go(next);
  }

  toggle() {
    this.playing = !this.playing;
    if (this.playing) {
      if (this.isAtEnd) this.t = 0;
      this.last = performance.now();
      this.rest = 0;
      this.wake();
    }
    this.changed(!this.playing);
  }

  /** @param {number} factor */
  changeSpeed(factor) {
    this.speed = Math.min(16, Math.max(1 / 16, this.speed * factor));
    this.changed(true);
  }

  stop() {
    this.playing = false;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  wake() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  /** @param {number} now */
  tick(now) {
    this.frame = 0;
    if (!this.playing) return;
    const passed = Math.min(100, now - this.last);
    this.last = now;
    if (isStill()) {
      this.rest += passed * this.speed;
      if (this.rest < STILL) return this.wake();
      this.rest = 0;
      this.t = this.moments.find((t) => t > this.t) ?? this.end;
    } else {
      this.t += (passed / FLIGHT) * this.speed * this.flight;
    }
    if (this.t >= this.end) {
      this.t = this.end;
      this.playing = false;
    }
    this.changed(!this.playing);
    if (this.playing) this.wake();
  }
}
