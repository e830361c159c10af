/**
 * Time to pixels. To scale, but for long waits in which nothing happens: those are folded, and say how long they were. Pure.
 */

import { short } from "./words.js";

/** A wait of more than this many flights of a message is folded, … */
const LONGEST = 6;

/** … and takes this many pixels: there is room for its length. */
const FOLD = 56;

/** A flight takes at most this many pixels: a short run need not fill a wide window. */
const WIDEST = 240;

/**
 * @typedef {object} Fold a wait that is drawn shorter than it was
 * @property {number} from @property {number} to @property {number} x its middle @property {number} x0 @property {number} x1
 *
 * @typedef {object} Options
 * @property {[number, number] | null} [domain] the times at both edges: nothing is folded then, and everything fits
 * @property {boolean} [unfold]
 * @property {number} [zoom] 1 fits
 * @property {number} [least] pixels of a flight, at the least
 * @property {number} [fold] pixels of a folded wait
 */

/** Results about runs, which never change; layouts are made again at every zoom. @type {WeakMap<import("./run.js").Run, { times: number[], flights: number[] }>} */
const known = new WeakMap();

/** @param {import("./run.js").Run} run */
function survey(run) {
  let found = known.get(run);
  if (!found) {
    found = { times: sorted(instants(run)), flights: flights(run) };
    known.set(run, found);
  }
  return found;
}

/** Ascending, without repetition. @param {number[]} times */
const sorted = (times) => Float64Array.from(new Set(times)).sort().reduce((/** @type {number[]} */ all, t) => (all.push(t), all), []);

/** Every time at which something is visible. @param {import("./run.js").Run} run */
function instants(run) {
  const times = [0, run.end];
  for (const step of run.steps) if (!step.background) times.push(step.at);
  for (const message of run.messages) {
    if (run.kinds[message.kind].background) continue;
    times.push(message.sent, message.arrives ?? message.sent + run.d, message.again ?? message.sent);
  }
  const { leader = [], lease = [], partition = [], cuts = [], paused = [], down = [] } = run.data.intervals ?? {};
  for (const { from, to } of [...leader, ...partition, ...cuts, ...paused, ...down]) times.push(from, to ?? from);
  for (const { to } of lease) if (to !== null && to < run.end) times.push(to);
  return times;
}

/** How long each message took, in order. @param {import("./run.js").Run} run */
function flights(run) {
  const found = [];
  for (const { arrives, sent, kind } of run.messages) {
    if (arrives !== null && arrives > sent && !run.kinds[kind].background) found.push(arrives - sent);
  }
  return found.sort((a, b) => a - b);
}

/** How long a message takes, typically: the median. D allows for retransmissions and may be far longer. @param {import("./run.js").Run[]} runs */
export function typicalFlight(runs) {
  const all = runs.length === 1 ? survey(runs[0]).flights : runs.flatMap((run) => survey(run).flights).sort((a, b) => a - b);
  return Math.max(1, all[all.length >> 1] ?? runs[0].d ?? 1);
}

export class TimeScale {
  /** @param {import("./run.js").Run[]} runs that share the axis @param {number} width @param {Options} [options] */
  constructor(runs, width, { domain = null, unfold = false, zoom = 1, least = 0, fold = FOLD } = {}) {
    this.unit = typicalFlight(runs);
    const times = domain ?? (runs.length === 1 ? survey(runs[0]).times : sorted(runs.flatMap((run) => survey(run).times)));
    const waits = times.slice(1).map((to, place) => ({ from: times[place], to, folded: !domain && !unfold && to - times[place] > LONGEST * this.unit }));
    const folds = waits.filter((wait) => wait.folded).length;
    const flights = waits.reduce((sum, wait) => sum + (wait.folded ? 0 : (wait.to - wait.from) / this.unit), 0);
    const room = Math.max(width - folds * fold, width * 0.3);
    const fitting = flights > 0 ? room / flights : room;
    /** Pixels of a flight. */
    this.flight = (domain ? fitting : Math.max(least, Math.min(fitting, WIDEST))) * zoom;
    /** Whether everything is within `width`. */
    this.fits = zoom <= 1 && this.flight <= fitting + 1e-9;
    let x = 0;
    /** @type {{ from: number, to: number, x0: number, x1: number, folded: boolean }[]} */
    this.pieces = [];
    for (const wait of waits) {
      const x1 = x + (wait.folded ? fold : ((wait.to - wait.from) / this.unit) * this.flight);
      const last = this.pieces.at(-1);
      // Pieces of one scale are one piece: a run of 5,000 events has a handful of them.
      if (last && !last.folded && !wait.folded) Object.assign(last, { to: wait.to, x1 });
      else this.pieces.push({ ...wait, x0: x, x1 });
      x = x1;
    }
    this.zoom = zoom;
    this.start = times[0] ?? 0;
    this.end = times[times.length - 1] ?? 0;
    /** How many pixels it takes. */
    this.width = x;
    /** @type {Fold[]} */
    this.folds = this.pieces.filter((piece) => piece.folded).map(({ from, to, x0, x1 }) => ({ from, to, x0, x1, x: (x0 + x1) / 2 }));
  }

  /** @param {number} t */
  toX(t) {
    const piece = this.find((one) => one.to < t);
    if (!piece) return this.width + Math.max(0, (t - this.end) / this.unit) * this.flight;
    return piece.x0 + ((t - piece.from) / (piece.to - piece.from)) * (piece.x1 - piece.x0);
  }

  /** @param {number} x */
  toTime(x) {
    const piece = this.find((one) => one.x1 < x);
    if (!piece) return this.end;
    const t = piece.from + ((x - piece.x0) / (piece.x1 - piece.x0)) * (piece.to - piece.from);
    return Math.max(this.start, Math.round(t));
  }

  /** The first piece that is not before what is sought. @param {(piece: TimeScale["pieces"][0]) => boolean} before */
  find(before) {
    let [low, high] = [0, this.pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(this.pieces[middle])) low = middle + 1;
      else high = middle;
    }
    return this.pieces[low];
  }

  /** Whether a time lies within a folded wait, not at its edges. @param {number} t */
  isFolded(t) {
    return this.folds.some(({ from, to }) => t > from && t < to);
  }

  /** Round times at least `apart` pixels from each other, outside of folds, between two places. @param {number} apart @param {number} [x0] @param {number} [x1] @returns {{ t: number, x: number, text: string }[]} */
  ticks(apart, x0 = 0, x1 = this.width) {
    const { ns } = this.size(apart);
    const every = this.every(apart);
    /** @type {{ t: number, x: number, text: string }[]} */
    const ticks = [];
    for (const piece of this.pieces) {
      if (piece.folded || piece.x1 < x0 || piece.x0 > x1) continue;
      const [from, to] = [Math.max(piece.from, this.toTime(x0)), Math.min(piece.to, this.toTime(x1))];
      for (let n = Math.ceil(from / every); n * every <= to; n++) {
        const x = this.toX(n * every);
        if (ticks.length && x - ticks[ticks.length - 1].x < apart * 0.7) continue;
        ticks.push({ t: n * every, x, text: short((n * every) / ns) });
      }
    }
    return ticks;
  }

  /** How far apart ticks are, in time: not closer than a message's flight, unless one looks closer. @param {number} apart */
  every(apart) {
    const pixels = (this.unit * apart) / this.flight;
    return roundAbove(this.zoom > 1 ? pixels : Math.max(this.unit, pixels));
  }

  /** The unit of time that suits the ticks. @param {number} apart */
  size(apart) {
    const every = this.every(apart);
    if (this.end >= 1e10 || every >= 1e9) return { ns: 1e9, name: "s" };
    return this.unit >= 2e5 || every >= 1e5 ? { ns: 1e6, name: "ms" } : { ns: 1e3, name: "µs" };
  }
}

/** As the views know it. @param {import("./run.js").Run | import("./run.js").Run[]} run one run, or several on one axis @param {number} width @param {Options} [options] */
export const timeScale = (run, width, options) => new TimeScale(Array.isArray(run) ? run : [run], width, options);

/** The least of 1, 2, 5, 10, 20, … that is not below `value`. @param {number} value */
export function roundAbove(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return power * ([1, 2, 5, 10].find((digit) => digit * power >= value * 0.999999) ?? 10);
}

/** Round numbers from 0 to `end`, as many as have room. @param {number} end @param {number} width in pixels */
export function roundTicks(end, width) {
  const every = roundAbove(end / Math.max(3, Math.floor(width / 160)));
  return Array.from({ length: Math.floor(end / every) + 1 }, (_, place) => place * every);
}
