/** One clock for several runs. */

import { isStill } from "../main.js";
import { Playback } from "./playback.js";

/** How long the flight of a message takes at speed 1, in milliseconds. */
export const FLIGHT = 300;

export class RaceClock extends Playback {
  /** @param {{ changed: (settled: boolean) => void }} told */
  constructor({ changed }) {
    super(changed);
    this.t = 0;
    this.end = 1;
    /** How long a flight is, by the runs' time. */
    this.flight = 1e6;
    /** Every time at which something happens in a lane. @type {number[]} */
    this.moments = [];
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

  /** @param {number} now */
  tick(now) {
    if (!this.playing) return;
    const passed = this.passed(now);
    if (isStill()) {
      if (!this.isDue(passed)) return;
      this.t = this.moments.find((t) => t > this.t) ?? this.end;
    } else {
      this.t += (passed / FLIGHT) * this.speed * this.flight;
    }
    if (this.t >= this.end) {
      this.t = this.end;
      this.playing = false;
    }
    this.changed(!this.playing);
  }
}
