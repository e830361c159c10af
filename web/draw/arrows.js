/** Arrows of a space-time diagram, in SVG: for what is in sight and can be counted. */

import { s } from "../dom.js";
import { crossPath, head, missPath } from "./signs.js";

/** @typedef {import("../model/layout.js").Arrow} Arrow */

/** The way of an arrow up to its head; `tip` is where the head stands and which way it points. @param {Arrow} arrow */
export function way({ points, curved, fate, family }) {
  const end = points[points.length - 1];
  const before = points[points.length - 2];
  const angle = Math.atan2(end.y - before.y, end.x - before.x);
  const headed = fate === "received" || fate === "in flight";
  const cover = headed ? Math.min(head(family).length, Math.hypot(end.x - before.x, end.y - before.y) * 0.6) - 1 : 0;
  const stop = { x: end.x - Math.cos(angle) * cover, y: end.y - Math.sin(angle) * cover };
  const [a, middle] = points;
  const d = points.length < 3 ? `M${at(a)}L${at(stop)}` : curved ? `M${at(a)}Q${at(middle)} ${at(stop)}` : `M${at(a)}L${at(middle)}L${at(stop)}`;
  return { d, end, degrees: (angle * 180) / Math.PI, headed };
}

/** @param {{ x: number, y: number }} point */
const at = ({ x, y }) => `${round(x)},${round(y)}`;

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;

/** One arrow with its head, or with the sign of its fate. @param {Arrow} arrow @param {{ thin?: boolean, small?: number, strong?: boolean }} [options] */
export function drawArrow(arrow, { thin = false, small = 1, strong = false } = {}) {
  const { d, end, degrees, headed } = way(arrow);
  const { message, family, fate, copy, background } = arrow;
  const place = `translate(${round(end.x)} ${round(end.y)})`;
  const classes = ["arrow", `family-${family}`, copy && "copy", fate === "in flight" && "ahead", (thin || background) && "thin", strong && "strong"];
  const tip = head(family);
  return s("g", { class: classes.filter(Boolean).join(" "), "data-message": message.id },
    s("path", { class: "way", d }),
    headed
      ? s("path", { class: tip.hollow ? "tip hollow" : "tip", d: tip.d, transform: `${place} rotate(${round(degrees)})${small === 1 ? "" : ` scale(${small})`}` })
      : s("path", { class: fate === "lost" ? "cross" : "miss", d: (fate === "lost" ? crossPath : missPath)(background ? 2.6 : small < 1 ? 3 : 4.2), transform: place }));
}
