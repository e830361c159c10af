/**
 * What is written into a space-time diagram, and where: only where a text meets no arrow, band, sign or other text. What has
 * no place is left to the tooltip. Pure.
 */

import { polyline } from "./layout.js";
import { isHolding } from "./run.js";
import { list } from "./words.js";

/**
 * @typedef {{ x0: number, y0: number, x1: number, y1: number }} Box
 * @typedef {object} Note something worth a text
 * @property {number} step @property {number} member @property {string} text @property {number} rank the lower, the sooner it gets a place
 * @property {number} room pixels around the event that its sign takes
 * @typedef {object} Label
 * @property {number} step @property {string} text @property {number} x @property {number} y the baseline
 * @property {"start" | "end"} anchor @property {Box} box @property {number} rank
 */

const AIR = 2;

/** What was found of runs, which never change. @type {WeakMap<import("./run.js").Run, Note[]>} */
const known = new WeakMap();

/** Everything that deserves a text, most important first. @param {import("./run.js").Run} run @returns {Note[]} */
export function notes(run) {
  const before = known.get(run);
  if (before) return before;
  /** @type {Note[]} */
  const found = [];
  known.set(run, found);
  for (const step of run.steps) {
    const note = noteOf(run, step);
    if (note && step.member !== null) found.push({ step: step.i, member: step.member, ...note });
  }
  return found.sort((a, b) => a.rank - b.rank || a.step - b.step);
}

/** @param {import("./run.js").Run} run @param {import("./run.js").Step} step @returns {{ text: string, rank: number, room: number } | null} */
function noteOf(run, step) {
  const rule = step.rules.at(-1);
  const name = run.name(step.member);
  const term = run.data.leases ? step.change.find(([, change]) => change.term)?.[1].term[1] : null;
  const named = (/** @type {string} */ text) => (rule ? `${rule}: ${text}` : text);
  if (becomesLeader(step) && run.excludes) return { text: named(`${name} enters`), rank: 0, room: 8 };
  if (becomesLeader(step)) return { text: named(`${name} leads${term ? `, term ${term}` : ""}`), rank: 0, room: 10 };
  const told = broadcast(run, step);
  if (step.type === "campaign") return { text: told ? `${name} starts: ${told}` : `${name} starts an election`, rank: 1, room: 8 };
  if (asksToEnter(step)) return { text: told ? `${name} asks: ${told}` : `${name} asks to enter`, rank: 1, room: 8 };
  if (step.type === "fault") return step.at === 0 ? null : { text: step.text, rank: 2, room: 7 };
  if (step.background) return null;
  if (step.type === "timer") return told || rule ? { text: told ? named(told) : String(rule), rank: 3, room: 7 } : null;
  if (step.type === "command") return { text: step.text, rank: 2, room: 7 };
  return null;
}

/** Whether a member begins to lead in this step, or enters. @param {import("./run.js").Step} step */
export const becomesLeader = (step) => step.change.some(([member, { role }]) => member === step.member && isHolding(role?.[1]));

/** Whether a member asks to enter in this step, and must wait. @param {import("./run.js").Step} step */
export const asksToEnter = (step) => step.type === "section" && step.change.some(([, { role }]) => role?.[1] === "waiting");

/** One text for all that a step sends: "ELECTION to 5, 6 and 7". @param {import("./run.js").Run} run @param {import("./run.js").Step} step */
export function broadcast(run, step) {
  /** @type {Map<string, number[]>} */
  const kinds = new Map();
  for (const id of step.sends) {
    const message = run.byId.get(id);
    if (!message || run.kinds[message.kind].background) continue;
    const { name } = run.kinds[message.kind];
    const to = kinds.get(name);
    if (to) to.push(message.to);
    else kinds.set(name, [message.to]);
  }
  return [...kinds].map(([kind, to]) => `${kind} to ${receivers(run, to)}`).join("; ");
}

/** @param {import("./run.js").Run} run @param {number[]} to */
function receivers(run, to) {
  if (to.length > 2 && to.length === run.order.length - 1) return "all others";
  return to.length > 6 ? `${to.length} members` : list([...to].sort((a, b) => a - b).map((id) => run.name(id)));
}

/**
 * @param {Note[]} notes
 * @param {{ at(note: Note): { x: number, y: number }, measure(text: string): number, arrows: import("./layout.js").Arrow[], taken: Box[], bounds: Box, height?: number }} picture
 * @returns {Label[]}
 */
export function place(notes, { at, measure, arrows, taken, bounds, height = 14 }) {
  const lines = arrows.map((arrow) => segments(arrow));
  /** @type {Label[]} */
  const placed = [];
  for (const note of notes) {
    const { x, y } = at(note);
    if (x < bounds.x0 - 1 || x > bounds.x1 + 1) continue;
    const width = measure(note.text);
    const label = candidates(note, x, y, width, height).find(({ box }) =>
      box.x0 >= bounds.x0 && box.x1 <= bounds.x1 && box.y0 >= bounds.y0 && box.y1 <= bounds.y1 &&
      !taken.some((other) => meets(box, other)) && !placed.some((other) => meets(box, other.box)) &&
      !lines.some((line) => crosses(line, box)));
    if (label) placed.push(label);
  }
  return placed;
}

/** @param {Note} note @param {number} x @param {number} y @param {number} width @param {number} height @returns {Label[]} */
function candidates({ step, text, rank, room }, x, y, width, height) {
  const rows = [y - room, y + room + height, y - room - height * 0.8, y + room + height * 1.8];
  const found = [];
  for (const bottom of rows) {
    for (const anchor of /** @type {("start" | "end")[]} */ (["start", "end"])) {
      for (const shift of rank === 0 ? [2, 12, 26, 44] : [2, 12]) {
        const left = anchor === "start" ? x + shift : x - shift - width;
        const box = { x0: left, x1: left + width, y0: bottom - height, y1: bottom };
        found.push({ step, text, rank, anchor, x: anchor === "start" ? left : left + width, y: bottom - height * 0.25, box });
      }
    }
  }
  return found;
}

/** @param {Box} a @param {Box} b */
const meets = (a, b) => a.x0 - AIR < b.x1 && a.x1 + AIR > b.x0 && a.y0 - AIR < b.y1 && a.y1 + AIR > b.y0;

/** @param {import("./layout.js").Arrow} arrow */
function segments(arrow) {
  const points = polyline(arrow);
  const xs = points.map(({ x }) => x);
  const ys = points.map(({ y }) => y);
  return { points, box: { x0: Math.min(...xs), x1: Math.max(...xs), y0: Math.min(...ys), y1: Math.max(...ys) } };
}

/** @param {{ points: import("./layout.js").Point[], box: Box }} line @param {Box} box */
function crosses({ points, box: around }, box) {
  if (!meets(around, box)) return false;
  for (let k = 0; k + 1 < points.length; k++) if (cuts(points[k], points[k + 1], box)) return true;
  return false;
}

/** Whether the way from `a` to `b` meets the box with its air. @param {import("./layout.js").Point} a @param {import("./layout.js").Point} b @param {Box} box */
function cuts(a, b, box) {
  let [from, to] = [0, 1];
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const sides = [[-dx, a.x - (box.x0 - AIR)], [dx, box.x1 + AIR - a.x], [-dy, a.y - (box.y0 - AIR)], [dy, box.y1 + AIR - a.y]];
  for (const [speed, room] of sides) {
    if (speed === 0) {
      if (room < 0) return false;
    } else if (speed < 0) from = Math.max(from, room / speed);
    else to = Math.min(to, room / speed);
  }
  return from <= to;
}
