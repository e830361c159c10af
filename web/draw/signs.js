/**
 * The signs of all pictures: one shape for each meaning, colour on top of it. Shapes are drawn around (0, 0).
 *
 * Dash means fate, shape means kind, colour repeats the kind.
 */

import { s } from "../dom.js";

/** @typedef {"ask" | "answer" | "announce" | "handover" | "refuse" | "upkeep"} Family */

/** What each family of messages does, in a word. @type {Record<Family, string>} */
export const FAMILIES = {
  ask: "asks",
  answer: "answers",
  announce: "announces",
  handover: "hands over",
  refuse: "refuses",
  upkeep: "keeps contact",
};

/** A five-pointed star of radius `r`. @param {number} r */
export function starPath(r) {
  const points = [];
  for (let i = 0; i < 10; i++) {
    const radius = i % 2 ? r * 0.44 : r;
    const angle = (Math.PI / 5) * i - Math.PI / 2;
    points.push(`${(radius * Math.cos(angle)).toFixed(2)},${(radius * Math.sin(angle)).toFixed(2)}`);
  }
  return `M${points.join("L")}Z`;
}

/** A cross of radius `r`. @param {number} r */
export const crossPath = (r) => `M${-r},${-r}L${r},${r}M${r},${-r}L${-r},${r}`;

/** A circle of radius `r` with a stroke through it: it arrived, and no one was there. @param {number} r */
export function missPath(r) {
  const k = (r * Math.SQRT1_2).toFixed(2);
  return `${circlePath(r)}M-${k},${k}L${k},-${k}`;
}

/** The outline of a message in flight. @param {Family} family @param {number} r */
export function tokenPath(family, r) {
  const k = r * 0.9;
  switch (family) {
    case "answer":
      return `M${-k + 2},${-k}H${k - 2}Q${k},${-k} ${k},${-k + 2}V${k - 2}Q${k},${k} ${k - 2},${k}H${-k + 2}Q${-k},${k} ${-k},${k - 2}V${-k + 2}Q${-k},${-k} ${-k + 2},${-k}Z`;
    case "announce":
      return starPath(r * 1.2);
    case "handover":
      return `M0,${-r * 1.15}L${r * 1.15},0L0,${r * 1.15}L${-r * 1.15},0Z`;
    case "refuse": {
      const c = k * 0.42;
      return `M${-c},${-k}H${c}L${k},${-c}V${c}L${c},${k}H${-c}L${-k},${c}V${-c}Z`;
    }
    case "upkeep":
      return circlePath(r * 0.55);
    default:
      return circlePath(r);
  }
}

/** What stands within the outline. @param {Family} family @param {number} r */
export function tokenMark(family, r) {
  const k = r * 0.45;
  switch (family) {
    case "ask":
      return `M${-k},${-k * 0.5}Q${-k},${-k * 1.4} 0,${-k * 1.4}Q${k},${-k * 1.4} ${k},${-k * 0.5}Q${k},${k * 0.1} 0,${k * 0.5}M0,${k * 1.3}V${k * 1.4}`;
    case "answer":
      return `M${-k},0L${-k * 0.2},${k * 0.8}L${k},${-k * 0.8}`;
    case "handover":
      return `M${-k},0H${k}M${k * 0.3},${-k * 0.6}L${k},0L${k * 0.3},${k * 0.6}`;
    case "refuse":
      return `M${-k},0H${k}`;
    default:
      return "";
  }
}

/** @param {number} r */
const circlePath = (r) => `M${-r},0A${r},${r} 0 1 1 ${r},0A${r},${r} 0 1 1 ${-r},0Z`;

/** A message in flight. @param {Family} family @param {number} r */
export function token(family, r) {
  const mark = tokenMark(family, r);
  return s("g", { class: `token family-${family}` },
    s("path", { class: "body", d: tokenPath(family, r) }),
    mark && r >= 5 ? s("path", { class: "mark", d: mark }) : null);
}

/**
 * The head of an arrow whose point is at (0, 0) and that comes from the left. @param {Family} family
 * @returns {{ d: string, hollow: boolean, length: number }} `length`: how much of the way it covers
 */
export function head(family) {
  switch (family) {
    case "answer":
      return { d: "M0,0L-8,-3.6V3.6Z", hollow: true, length: 8 };
    case "announce":
      return { d: "M0,0L-6.5,-3.2V3.2ZM-5.5,0L-12,-3.2V3.2Z", hollow: false, length: 11 };
    case "handover":
      return { d: "M0,0L-5,-3.6L-10,0L-5,3.6Z", hollow: false, length: 10 };
    case "refuse":
      return { d: "M0,-4.5H-2V4.5H0Z", hollow: false, length: 2 };
    case "upkeep":
      return { d: "M0,0L-5,-2V2Z", hollow: false, length: 5 };
    default:
      return { d: "M0,0L-8.5,-3.6V3.6Z", hollow: false, length: 8 };
  }
}

/** A short arrow for legends. @param {Family} family */
export function arrowSign(family) {
  const { d, hollow, length } = head(family);
  return s("svg", { viewBox: "0 0 26 12", width: 26, height: 12, class: `sign family-${family}`, "aria-hidden": "true" },
    s("path", { class: "way", d: `M1,6H${25 - length}` }),
    s("path", { class: hollow ? "tip hollow" : "tip", d, transform: "translate(25 6)" }));
}

/** A token for legends and counts. @param {Family} family */
export function tokenSign(family) {
  return s("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, class: "sign", "aria-hidden": "true" }, token(family, 6));
}

/** A small picture of a member, for legends and headings. @param {"leader" | "candidate" | "follower" | "inside" | "waiting" | "outside" | "witness" | "drained" | "paused" | "down" | "unknown"} role */
export function memberSign(role) {
  const shape = role === "witness" ? s("path", { class: "disc", d: "M0,-7L7,0L0,7L-7,0Z" }) : s("circle", { class: "disc", r: 7 });
  const marks = {
    leader: s("path", { class: "star", d: starPath(4.6) }),
    candidate: s("text", { class: "badge", y: 3.5 }, "?"),
    waiting: s("text", { class: "badge", y: 3.5 }, "?"),
    drained: s("path", { class: "bar", d: "M-5,9H5" }),
    paused: s("path", { class: "bar", d: "M-2,-3V3M2,-3V3" }),
    down: s("path", { class: "cross", d: crossPath(4) }),
    unknown: s("text", { class: "badge", y: 3.5 }, "?"),
  };
  return s("svg", { viewBox: "-10 -10 20 20", width: 20, height: 20, class: `sign member role-${role}`, "aria-hidden": "true" },
    shape, /** @type {any} */ (marks)[role]);
}
