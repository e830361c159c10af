/** Signs on the life lines (starts, leaders, timers, crashes), and their tooltips. */

import { s } from "../dom.js";
import { asksToEnter, becomesLeader } from "../model/labels.js";
import { time } from "../model/words.js";
import { crossPath, starPath } from "./signs.js";

/** @typedef {"leads" | "enters" | "starts" | "crash" | "restart" | "timer" | "suspect" | "trust" | "fault"} Sign */

/** The sign of a step. @param {import("../model/run.js").Step} step @returns {Sign | null} */
export function signOf(step) {
  if (step.member === null) return null;
  if (becomesLeader(step)) return step.change.some(([, { role }]) => role?.[1] === "inside") ? "enters" : "leads";
  if (step.type === "campaign" || asksToEnter(step)) return "starts";
  if (step.type === "fault") {
    const up = step.change.find(([, change]) => change.up)?.[1].up;
    return up ? (up[1] ? "restart" : "crash") : step.change.length || step.at === 0 ? null : "fault";
  }
  if (step.type === "suspect" || step.type === "trust") return step.type;
  if (step.type === "timer" && !step.background && (step.rules.length || step.sends.length)) return "timer";
  return null;
}

/** How much room a sign takes on each side. @type {Record<Sign, number>} */
export const ROOM = { leads: 10, enters: 8, starts: 8, crash: 7, restart: 6, timer: 3, suspect: 4, trust: 4, fault: 5 };

/** @param {Sign} sign @param {number} x @param {number} y @param {number} scale @param {number} step */
export function drawSign(sign, x, y, scale, step) {
  const place = `translate(${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10})${scale === 1 ? "" : ` scale(${scale})`}`;
  return s("g", { class: `event ${sign}`, transform: place, "data-step": step }, ...shapes(sign));
}

/** @param {Sign} sign @returns {SVGElement[]} */
function shapes(sign) {
  switch (sign) {
    case "leads":
      return [s("path", { class: "star", d: starPath(9.5) })];
    case "enters":
      return [s("path", { class: "star", d: "M0,-8L8,0L0,8L-8,0Z" })];
    case "starts":
      return [s("circle", { r: 7.5 }), s("path", { class: "call", d: "M0,-4V1M0,3.6V4" })];
    case "crash":
      return [s("path", { class: "cross", d: crossPath(5.5) })];
    case "restart":
      return [s("circle", { r: 5.5 }), s("path", { class: "call", d: "M-2.4,0.6L0,-2.2L2.4,0.6M0,-2.2V3" })];
    case "timer":
      return [s("path", { class: "bar", d: "M0,-8V8" })];
    case "suspect":
    case "trust":
      return [s("circle", { r: 3.4 })];
    default:
      return [s("path", { class: "call", d: "M-3.5,-3.5H3.5V3.5H-3.5Z" })];
  }
}

/** The tooltip of a message. @param {import("../model/run.js").Run} run @param {import("../model/run.js").Message} message @param {number} now */
export function tellMessage(run, message, now) {
  const [from, to] = [run.name(message.from), run.name(message.to)];
  const sent = `${message.text} from ${from} to ${to}, sent at ${time(message.sent)}`;
  const changed = message.changed === "delayed" ? ", delayed" : "";
  if (message.arrives === null) return `${sent}: ${message.changed === "dropped" ? "dropped" : "lost"}`;
  if (message.fate === "receiver down") return `${sent}, reaches ${to} at ${time(message.arrives)}, which is down`;
  const again = message.again === null ? "" : `, and again at ${time(message.again)}`;
  if (now >= message.sent && now < message.arrives) return `${sent}${changed}, arrives in ${time(message.arrives - now)}${again}`;
  return `${sent}${changed}, arrives at ${time(message.arrives)}${again}`;
}

/** The tooltip of an event. @param {import("../model/run.js").Step} step */
export function tellStep(step) {
  const rules = step.rules.length ? ` [${step.rules.join(", ")}]` : "";
  return `${time(step.at)}: ${step.text}${rules}`;
}
