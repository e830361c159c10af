/** What a selection is about: its causal past in full strength above a picture that turns faint. */

import { s } from "../dom.js";
import { drawArrow } from "./arrows.js";
import { ROOM, drawSign, signOf } from "./marks.js";

/**
 * @typedef {object} Emphasis
 * @property {Set<number>} steps @property {Set<number>} messages @property {number | null} step the selected one
 * @property {number | null} message @property {number | null} member
 */

/**
 * What stays in full strength.
 * @param {import("../model/run.js").Run} run @param {string | null} selection @param {import("../model/run.js").Position} position
 * @param {"past" | "future"} cone
 * @returns {Emphasis | null}
 */
export function emphasisOf(run, selection, position, cone) {
  if (!selection) return null;
  const step = run.stepOf(selection, position);
  const message = selection.startsWith("m") && run.byId.has(Number(selection.slice(1))) ? Number(selection.slice(1)) : null;
  const member = /^-?\d+$/.test(selection) ? Number(selection) : null;
  if (step === null) return member === null ? null : { steps: new Set(), messages: new Set(), step, message, member };
  const steps = cone === "past" ? run.past(step) : run.future(step);
  const messages = run.messagesWithin(steps);
  if (message !== null) messages.add(message);
  return { steps, messages, step, message, member };
}

/**
 * @param {import("./ground.js").Picture} picture @param {Emphasis} emphasis @param {number} size of the signs
 * @returns {SVGElement[]}
 */
export function drawEmphasis({ run, scale, lanes, arrows }, { steps, messages, step, message }, size) {
  const found = [];
  let path = "";
  for (const i of steps) {
    const { member, at, causes } = run.steps[i];
    if (member === null) continue;
    for (const cause of causes) {
      if (steps.has(cause) && run.steps[cause].member === member) path += `M${scale.toX(run.steps[cause].at)},${lanes.y(member)}H${scale.toX(at)}`;
    }
  }
  found.push(s("path", { class: "path", d: path }));
  for (const arrow of arrows) {
    if (!messages.has(arrow.message.id) || (arrow.copy && arrow.message.id !== message)) continue;
    if (arrow.message.id === message) found.push(s("path", { class: "halo", d: drawnWay(arrow) }));
    found.push(drawArrow(arrow, { strong: true }));
  }
  for (const i of steps) {
    const { member, at } = run.steps[i];
    if (member === null) continue;
    const [x, y, sign] = [scale.toX(at), lanes.y(member), signOf(run.steps[i])];
    if (i === step && message === null) found.push(s("circle", { class: "halo", cx: x, cy: y, r: ((sign ? ROOM[sign] : 4) + 4) * size }));
    found.push(sign ? drawSign(sign, x, y, size, i) : s("circle", { class: "done", cx: x, cy: y, r: Math.min(3.5, lanes.pitch * 0.2) }));
  }
  return found;
}

/** @param {import("../model/layout.js").Arrow} arrow */
function drawnWay({ points, curved }) {
  const [a, ...rest] = points.map(({ x, y }) => `${x},${y}`);
  return curved ? `M${a}Q${rest.join(" ")}` : `M${a}L${rest.join("L")}`;
}
