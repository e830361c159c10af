/**
 * Where the labels of members stand: outside the ring, on no link, on no disc, on no other label, within the stage. Pure.
 */

/**
 * @typedef {import("./ring.js").Place} Place
 * @typedef {import("./ring.js").Segment} Segment
 * @typedef {{ x: number, y: number, width: number, height: number }} Box its left upper corner and size
 * @typedef {{ x: number, y: number, anchor: "start" | "middle" | "end" }} LabelPlace of the first line's top
 * @typedef {{ places: Place[], links: Segment[], width: number, height: number }} Stage
 * @typedef {{ place: Place, width: number, lines: number, ringed: boolean }} Label `ringed`: its disc has a ring around it
 * @typedef {{ id: string, width: number, members: Place[] }} Note of a group
 */

import { mean } from "./ring.js";

export const LINE = 17;
/** Around a disc: room for the ring of the lease and that of the selection; less where there is neither and no other place. */
const AIR = 18;
const LITTLE_AIR = 7;
const RINGED_AIR = 12;
/** Below this radius a label has one place: outside the ring. */
const SMALL = 12;
/** Above this many members a label stands outward of its disc or not at all: elsewhere it is read as its neighbour's. */
const CROWD = 6;

/** How wide a text is, about, in steps of 8 px so that a number that runs does not move its label. @param {string} text @param {number} [size] */
export function textWidth(text, size = 12.5) {
  return Math.ceil((text.length * size * 0.52) / 8) * 8;
}

/**
 * A place for each label, in the order given (the first chooses first), then for what is said of groups; none where there is
 * no room.
 * @param {Label[]} labels @param {Stage} stage @param {Note[]} [notes]
 * @returns {Map<string, LabelPlace>}
 */
export function placeLabels(labels, stage, notes = []) {
  /** @type {Box[]} */
  const taken = [];
  /** @type {Map<string, LabelPlace>} */
  const found = new Map();
  const take = (/** @type {string} */ id, /** @type {{ box: Box, at: LabelPlace }[]} */ tried) => {
    const free = tried.find(({ box }) => isFree(box, taken, stage));
    if (!free) return;
    taken.push(free.box);
    found.set(id, free.at);
  };
  for (const label of labels) {
    const sets = [AIR, label.ringed ? RINGED_AIR : LITTLE_AIR].map((air) => candidates(label, stage, air));
    const isCrowd = stage.places.length > CROWD;
    take(label.place.id, isCrowd ? sets.flatMap(({ outward }) => outward) : [...sets.flatMap(({ good }) => good), ...sets.flatMap(({ rest }) => rest)]);
  }
  for (const note of notes) take(note.id, outwards(note, stage));
  return found;
}

/** @param {Box} box @param {Box[]} taken @param {Stage} stage */
function isFree(box, taken, stage) {
  return isWithin(box, stage)
    && !taken.some((other) => meet(box, other))
    && !stage.places.some((place) => meetsDisc(box, place))
    && !stage.links.some((link) => crosses(grown(box), link));
}

/** The places tried for what is said of a group: from its middle away from the others. @param {Note} note @param {Stage} stage */
function outwards({ width, members }, stage) {
  const from = mean(members);
  const others = stage.places.filter((place) => !members.some(({ id }) => id === place.id));
  const away = mean(others);
  const length = Math.hypot(from.x - away.x, from.y - away.y) || 1;
  const [ux, uy] = [(from.x - away.x) / length, (from.y - away.y) / length];
  return Array.from({ length: 60 }, (_, k) => {
    // Fanning out to both sides, ever farther.
    const [far, side] = [Math.floor(k / 5) * 14, [0, 40, -40, 90, -90][k % 5]];
    const [x, y] = [from.x + ux * far - uy * side, from.y + uy * far + ux * side];
    return { box: { x: x - width / 2, y: y - LINE / 2, width, height: LINE }, at: { x, y: y - LINE / 2, anchor: /** @type {const} */ ("middle") } };
  });
}

/** The places tried, best first. @param {Label} label @param {{ width: number, height: number }} stage @param {number} air */
function candidates({ place, width, lines }, stage, air) {
  const height = lines * LINE;
  const { x, y, r, ux, uy, rim } = place;
  const side = ux < -0.01 ? -1 : 1;
  const out = uy < 0 ? -1 : 1;
  const entry = (/** @type {number} */ left, /** @type {number} */ top, /** @type {"start" | "middle" | "end"} */ anchor) => ({
    box: { x: left, y: top, width, height },
    at: { x: anchor === "start" ? left : anchor === "end" ? left + width : left + width / 2, y: top, anchor },
  });
  const beside = (/** @type {number} */ to, /** @type {number} */ shift) => {
    const near = Math.max(0, Math.abs(shift) - height / 2);
    const reach = Math.sqrt(Math.max(0, (r + air) ** 2 - near ** 2));
    return entry(to > 0 ? x + reach : x - reach - width, y + shift - height / 2, to > 0 ? "start" : "end");
  };
  const inside = Math.max(4, Math.min(stage.width - width - 4, x - width / 2));
  const under = (/** @type {number} */ to, /** @type {number} */ left) => entry(left, to > 0 ? y + r + air : y - r - air - height, "middle");
  // Beyond the tangent at the member: no link gets there.
  const support = (Math.abs(ux) * width + Math.abs(uy) * height) / 2;
  const reach = r + (r < SMALL ? rim + 9 : air) + support;
  const radial = entry(x + ux * reach - width / 2, y + uy * reach - height / 2, "middle");
  if (r < SMALL) return { good: [radial], rest: [], outward: [radial] };
  return {
    good: [beside(side, 0), beside(side, out * r * 0.7), radial, under(out, x - width / 2), under(out, inside)],
    rest: [beside(-side, out * r * 0.7), under(-out, x - width / 2), under(-out, inside), ...(Math.abs(ux) < 0.35 ? [beside(-side, 0)] : [])],
    outward: [...(Math.abs(ux) > 0.5 ? [beside(side, 0), beside(side, out * r * 0.7)] : []), radial, ...(Math.abs(uy) > 0.5 ? [under(out, x - width / 2)] : [])],
  };
}

/** A box with the air that a text needs beside a link. @param {Box} box @returns {Box} */
const grown = (box) => ({ x: box.x - 4, y: box.y - 2, width: box.width + 8, height: box.height + 4 });

/** @param {Box} box @param {{ width: number, height: number }} stage */
const isWithin = (box, stage) => box.x >= 2 && box.y >= 0 && box.x + box.width <= stage.width - 2 && box.y + box.height <= stage.height + 2;

/** @param {Box} a @param {Box} b */
const meet = (a, b) => a.x < b.x + b.width + 2 && b.x < a.x + a.width + 2 && a.y < b.y + b.height && b.y < a.y + a.height;

/** @param {Box} box @param {Place} place */
function meetsDisc(box, { x, y, r }) {
  const nearX = Math.max(box.x, Math.min(x, box.x + box.width));
  const nearY = Math.max(box.y, Math.min(y, box.y + box.height));
  return Math.hypot(nearX - x, nearY - y) < r + 5;
}

/** Whether a line runs through a box, by cutting it off at each edge. @param {Box} box @param {Segment} link */
export function crosses(box, link) {
  const [dx, dy] = [link.x2 - link.x1, link.y2 - link.y1];
  let [from, to] = [0, 1];
  const cuts = [[-dx, link.x1 - box.x], [dx, box.x + box.width - link.x1], [-dy, link.y1 - box.y], [dy, box.y + box.height - link.y1]];
  for (const [p, q] of cuts) {
    if (p === 0 && q < 0) return false;
    if (p < 0) from = Math.max(from, q / p);
    if (p > 0) to = Math.min(to, q / p);
  }
  return from <= to;
}
