/**
 * Where everything in a space-time diagram lies. Pure.
 *
 * All arrows that leave one event start at ports side by side, and end at ports likewise; two that would still run within
 * 3 px of each other for more than 24 px are bent apart. So no arrow lies on another.
 */

export { timeScale, TimeScale, typicalFlight } from "./scale.js";

/**
 * @typedef {import("./run.js").Run} Run
 * @typedef {{ x: number, y: number }} Point
 *
 * @typedef {object} Arrow
 * @property {import("./run.js").Message} message
 * @property {boolean} copy the second of a doubled message
 * @property {import("../draw/signs.js").Family} family @property {boolean} background
 * @property {"received" | "lost" | "receiver down" | "in flight"} fate
 * @property {Point[]} points from the sender to the receiver; three if there is a knee or a bend
 * @property {boolean} curved the middle point is a control point, not a knee
 *
 * @typedef {object} Stretch a time in which a member was something
 * @property {number} member @property {"leads" | "campaigns" | "waits" | "inside" | "together" | "paused" | "down" | "lease"} state
 * @property {number} from @property {number | null} to @property {number} [term]
 */

const PORT = 3;
/** An arrow that goes less far to the right is as good as upright. */
const UPRIGHT = 6;
/** Crosses need more room than heads. */
const CROSS_PORT = 9;
/** Two arrows within 3 px of each other for more than 24 px are one to the eye; of one broadcast, within 2.2 px for 4. */
const [NEAR, NEAR_FOR] = [3, 24];
const [TOUCHING, TOUCHING_FOR] = [2.2, 4];
/** Where there are more arrows, only those of one broadcast are kept apart: bends are but more lines. */
const MANY = 300;
const BENDS = [6, -6, 9, -9, 13, -13, 18, -18, 24, -24, 32, -32];

/** Lanes from top to bottom. @param {Run} run @param {number} height @param {{ top: number, most?: number }} options */
export function lanes(run, height, { top, most = 56 }) {
  const count = Math.max(1, run.order.length);
  const pitch = Math.min(most, height / count);
  /** @type {Map<number, number>} */
  const place = new Map(run.order.map((id, index) => [id, top + pitch * (index + 0.5)]));
  return { pitch, top, bottom: top + pitch * count, y: (/** @type {number} */ id) => place.get(id) ?? top };
}

/**
 * @param {Run} run @param {{ y(id: number): number, pitch: number }} lanes @param {import("./scale.js").TimeScale} scale
 * @param {{ background?: boolean, bends?: boolean }} [options]
 * @returns {Arrow[]}
 */
export function arrows(run, lanes, scale, { background = true, bends = true } = {}) {
  /** @type {Arrow[]} */
  const found = [];
  for (const message of run.messages) {
    const { family, background: isBackground } = run.kinds[message.kind];
    if (isBackground && (!background || scale.isFolded(message.sent) || scale.isFolded(message.arrives ?? message.sent))) continue;
    const base = { message, family, background: isBackground, curved: false };
    const [start, end] = [lanes.y(message.from), lanes.y(message.to)];
    const x0 = scale.toX(message.sent);
    const reach = (/** @type {number} */ t, /** @type {number} */ share) =>
      [{ x: x0, y: start }, { x: x0 + (scale.toX(t) - x0) * share, y: start + (end - start) * share }];
    const lost = message.arrives === null;
    found.push({ ...base, copy: false, fate: message.fate, points: reach(message.arrives ?? message.sent + run.d, lost ? 0.5 : 1) });
    if (message.again !== null) found.push({ ...base, copy: true, fate: "received", points: reach(message.again, 1) });
  }
  for (const arrow of found) if (arrow.message.from === arrow.message.to) loop(arrow, lanes.pitch);
  for (const arrow of found) if (arrow.message.changed === "delayed" && !arrow.copy) knee(arrow, run, scale);
  fan(found, (arrow) => arrow.message.by, "start");
  fan(found.filter((arrow) => arrow.fate !== "lost"), (arrow) => `${arrow.message.to} ${arrow.copy ? arrow.message.again : arrow.message.arrives}`, "end");
  if (bends) bendApart(found);
  return found;
}

/** To itself: a loop above the lane. @param {Arrow} arrow @param {number} pitch */
function loop(arrow, pitch) {
  const [a, b] = arrow.points;
  arrow.points = [a, { x: (a.x + b.x) / 2, y: a.y - pitch * 0.8 }, b];
  arrow.curved = true;
}

/** A delayed message has a knee where it would have arrived. @param {Arrow} arrow @param {Run} run @param {import("./scale.js").TimeScale} scale */
function knee(arrow, run, scale) {
  const [a, b] = arrow.points;
  const x = scale.toX(arrow.message.sent + run.d);
  if (x > a.x + 4 && x < b.x - 4) arrow.points = [a, { x, y: a.y + (b.y - a.y) * 0.7 }, b];
}

/**
 * Spreads the arrows that share an end along the life line: the steepest at the very place, flatter ones beside it, away
 * from the event. Sorted by slope they never cross. @param {Arrow[]} all @param {(arrow: Arrow) => string | number} key @param {"start" | "end"} end
 */
function fan(all, key, end) {
  /** @type {Map<string | number, { arrow: Arrow, first: Point, last: Point, slope: number }[]>[]} upwards and downwards */
  const groups = [new Map(), new Map()];
  for (const arrow of all) {
    const { points } = arrow;
    const [first, last] = [points[0], points[points.length - 1]];
    const way = groups[last.y < first.y ? 0 : 1];
    const one = { arrow, first, last, slope: Math.abs(last.y - first.y) / Math.max(1, last.x - first.x) };
    const name = key(arrow);
    const group = way.get(name);
    if (group) group.push(one);
    else way.set(name, [one]);
  }
  for (const group of [...groups[0].values(), ...groups[1].values()]) if (group.length > 1) spread(group, end);
}

/** @param {{ arrow: Arrow, first: Point, last: Point, slope: number }[]} group @param {"start" | "end"} end */
function spread(group, end) {
  const crossed = end === "end" && group.some(({ arrow }) => arrow.fate === "receiver down");
  const shortest = group.reduce((least, { first, last }) => Math.min(least, last.x - first.x), Infinity);
  // A third of the way may go to the ports, and more where the way is short: apart is what matters.
  const room = Math.max(4, shortest * 0.35, Math.min(shortest * 0.75, 18));
  const gap = Math.min(crossed ? CROSS_PORT : PORT, room / (group.length - 1));
  // Of two with one slope the first to start is the first to end.
  group.sort((a, b) => b.slope - a.slope || a.arrow.message.id - b.arrow.message.id || Number(a.arrow.copy) - Number(b.arrow.copy));
  // Nearly upright arrows would lie on each other all the way: they are moved as a whole.
  const upright = end === "start" && shortest < UPRIGHT;
  group.forEach(({ first, last }, place) => {
    if (upright) [first.x, last.x] = [first.x + PORT * place, last.x + PORT * place];
    else if (end === "start") first.x += gap * place;
    else last.x -= gap * place;
  });
}

/** Bends arrows that would run side by side too closely, the later away from the earlier. @param {Arrow[]} all */
function bendApart(all) {
  // Heartbeats are thin: what matters need not make way for them.
  const sorted = all.filter(({ background }) => !background).sort((a, b) => a.points[0].x - b.points[0].x);
  const many = sorted.length > MANY;
  /** @type {Map<string, Arrow[]>} arrows by an end and its rough place */
  const near = new Map();
  for (const arrow of sorted) {
    const keys = places(arrow);
    const around = [...new Set(keys.flatMap((key) => near.get(key) ?? []))];
    const rivals = many ? around.filter(({ message }) => message.by === arrow.message.by) : around;
    if (arrow.points.length === 2 && rivals.some((other) => isClose(arrow, other))) {
      const bent = leastClose(arrow, rivals);
      if (bent) Object.assign(arrow, { points: bent.points, curved: true });
    }
    for (const key of keys) {
      const list = near.get(key);
      if (list) list.push(arrow);
      else near.set(key, [arrow]);
    }
  }
}

/** The bend that brings an arrow near the fewest others; null if none is better than none. @param {Arrow} arrow @param {Arrow[]} rivals */
function leastClose(arrow, rivals) {
  let [best, fewest] = [/** @type {Arrow | null} */ (null), rivals.filter((other) => isClose(arrow, other)).length];
  for (const bend of BENDS) {
    const bent = bendBy(arrow, bend);
    const close = rivals.filter((other) => isClose(bent, other)).length;
    if (close < fewest) [best, fewest] = [bent, close];
    if (fewest === 0) break;
  }
  return best;
}

/** Where an arrow begins and ends, roughly: those that could lie on each other share a place. @param {Arrow} arrow */
function places({ message, points }) {
  const [from, to] = [Math.floor(points[0].x / NEAR_FOR), Math.floor(points[points.length - 1].x / NEAR_FOR)];
  return [-1, 0, 1].flatMap((shift) => [`from ${message.from} ${from + shift}`, `to ${message.to} ${to + shift}`]);
}

/** @param {Arrow} arrow @param {number} bend in pixels, to the right of its way if positive @returns {Arrow} */
function bendBy(arrow, bend) {
  const [a, b] = arrow.points;
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const middle = { x: (a.x + b.x) / 2 - (2 * bend * (b.y - a.y)) / length, y: (a.y + b.y) / 2 + (2 * bend * (b.x - a.x)) / length };
  return { ...arrow, points: [a, middle, b], curved: true };
}

/** Whether two arrows run too closely side by side. Those of one broadcast may not even touch beyond their ports. @param {Arrow} a @param {Arrow} b */
function isClose(a, b) {
  if (a.message.by !== b.message.by) return closeFor(a, b, NEAR) > NEAR_FOR;
  const ports = [a, b].flatMap(({ points }) => [points[0], points[points.length - 1]]);
  const free = (/** @type {Point} */ point) => ports.every((port) => Math.hypot(point.x - port.x, point.y - port.y) > 12);
  return closeFor(a, b, TOUCHING, free) > TOUCHING_FOR;
}

/** For how many pixels `a` is nearer than `near` to `b`. @param {Arrow} a @param {Arrow} b @param {number} near @param {(point: Point) => boolean} [counts] */
export function closeFor(a, b, near, counts = () => true) {
  const line = polyline(b);
  let length = 0;
  for (const point of sample(a, 4)) {
    if (!counts(point)) continue;
    for (let k = 0; k + 1 < line.length; k++) {
      if (toSegment(point, line[k], line[k + 1]) >= near) continue;
      length += point.step;
      break;
    }
  }
  return length;
}

/** Points along an arrow, every `step` pixels. @param {Arrow} arrow @param {number} step */
export function sample(arrow, step) {
  const found = [];
  const line = polyline(arrow);
  for (let k = 0; k + 1 < line.length; k++) {
    const [a, b] = [line[k], line[k + 1]];
    const length = Math.hypot(b.x - a.x, b.y - a.y);
    const count = Math.max(1, Math.round(length / step));
    for (let n = 0; n < count; n++) {
      const share = (n + 0.5) / count;
      found.push({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share, step: length / count });
    }
  }
  return found;
}

/** An arrow as straight pieces. @param {Arrow} arrow @returns {Point[]} */
export function polyline({ points, curved }) {
  if (!curved) return points;
  const [a, c, b] = points;
  return [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1].map((t) => ({
    x: (1 - t) ** 2 * a.x + 2 * t * (1 - t) * c.x + t * t * b.x,
    y: (1 - t) ** 2 * a.y + 2 * t * (1 - t) * c.y + t * t * b.y,
  }));
}

/** @param {Point} p @param {Point} a @param {Point} b */
export function toSegment(p, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const share = Math.max(0, Math.min(1, ((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(p.x - a.x - share * dx, p.y - a.y - share * dy);
}

/** @type {WeakMap<Run, number>} */
const fans = new WeakMap();

/** How many messages leave or reach a member at one instant, at most: their ports need room. @param {Run} run */
export function widestFan(run) {
  let widest = fans.get(run);
  if (widest === undefined) {
    /** @type {Map<string, number>} */
    const ends = new Map();
    for (const { id, by, to, arrives } of run.messages) {
      if (!run.counts(id)) continue;
      for (const end of [`from ${by}`, `to ${to} ${arrives}`]) ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    widest = Math.max(0, ...ends.values());
    fans.set(run, widest);
  }
  return widest;
}

/** What was found of runs, which never change. @type {WeakMap<Run, Stretch[]>} */
const known = new WeakMap();

/** The states of every member, and when it had them. @param {Run} run @returns {Stretch[]} */
export function stretches(run) {
  const before = known.get(run);
  if (before) return before;
  const { leader = [], lease = [], waiting = [], inside = [], overlap = [], down = [], paused = [] } = run.data.intervals ?? {};
  const of = (/** @type {any[]} */ list, /** @type {Stretch["state"]} */ state) => list.map((one) => ({ ...one, state }));
  // The members that are inside together.
  const together = run.excludes ? overlap.flatMap((/** @type {any} */ { members, ...when }) => members.map((/** @type {number} */ member) => ({ ...when, member }))) : [];
  const found = [...campaigns(run), ...of(leader, "leads"), ...of(waiting, "waits"), ...of(inside, "inside"), ...of(together, "together"), ...of(lease, "lease"), ...of(paused, "paused"), ...of(down, "down")];
  known.set(run, found);
  return found;
}

/** @param {Run} run @returns {Stretch[]} */
function campaigns(run) {
  /** @type {Stretch[]} */
  const found = [];
  /** @type {Map<number, number>} since when a member campaigns */
  const since = new Map();
  for (const state of run.frame(0).values()) if (state.role === "candidate") since.set(state.id, 0);
  for (const step of run.steps) {
    for (const [member, change] of step.change) {
      const over = since.has(member) && ((change.role && change.role[1] !== "candidate") || (change.up && !change.up[1]));
      if (over) {
        found.push({ member, state: "campaigns", from: /** @type {number} */ (since.get(member)), to: step.at });
        since.delete(member);
      }
      if (change.role?.[1] === "candidate") since.set(member, since.get(member) ?? step.at);
    }
  }
  for (const [member, from] of since) found.push({ member, state: "campaigns", from, to: null });
  return found.filter(({ from, to }) => to === null || to > from);
}
