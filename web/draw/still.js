/** What of a space-time diagram does not move: signs, arrows and texts, each in its place. */

import { s } from "../dom.js";
import { notes, place } from "../model/labels.js";
import { drawArrow } from "./arrows.js";
import { bandHeight } from "./ground.js";
import { ROOM, drawSign, signOf } from "./marks.js";
import { measure } from "./text.js";

/**
 * @typedef {import("./ground.js").Picture} Picture
 * @typedef {{ step: import("../model/run.js").Step, sign: import("./marks.js").Sign }} Signed
 */

/** The steps that have a sign. @param {Picture} picture @returns {Signed[]} */
export function signed({ steps, compact }) {
  const found = [];
  for (const step of steps) {
    const sign = signOf(step);
    if (sign && !(compact && (sign === "timer" || sign === "starts" || sign === "suspect" || sign === "trust"))) found.push({ step, sign });
  }
  return found;
}

/** @param {Picture} picture @param {number | null} shared */
export function drawArrows({ arrows, compact }, shared) {
  const thin = arrows.length > 150;
  const small = compact ? 0.72 : thin ? 0.8 : 1;
  return arrows.map((arrow) => {
    const drawn = drawArrow(arrow, { thin, small });
    if (shared !== null && arrow.message.by < shared) drawn.classList.add("shared");
    return drawn;
  });
}

/** @param {Picture} picture @param {Signed[]} signs @param {number | null} shared @param {number} size */
export function drawSigns({ run, scale, lanes }, signs, shared, size) {
  const downFirst = run.order.filter((id) => run.members.get(id)?.up === false);
  return [
    ...downFirst.map((id) => drawSign("crash", -12, lanes.y(id), size, -1)),
    ...signs.map(({ step, sign }) => {
      const drawn = drawSign(sign, scale.toX(step.at), lanes.y(/** @type {number} */ (step.member)), size, step.i);
      if (shared !== null && step.i < shared) drawn.classList.add("shared");
      return drawn;
    }),
  ];
}

/** Texts, where there is room for them. @param {Picture} picture @param {Signed[]} signs @param {boolean} mass whether there are too many arrows to look at each */
export function drawLabels(picture, signs, mass) {
  const { run, scale, lanes, compact, stretches, steps, end, until, arrows } = picture;
  const half = bandHeight(picture);
  const box = (/** @type {number} */ x0, /** @type {number} */ x1, /** @type {number} */ y, /** @type {number} */ r) => ({ x0, x1, y0: y - r, y1: y + r });
  // The bar of a time-out is narrow and high.
  const around = (/** @type {Signed} */ { step, sign }) => box(scale.toX(step.at) - ROOM[sign], scale.toX(step.at) + ROOM[sign], lanes.y(step.member ?? 0), Math.max(ROOM[sign], sign === "timer" ? 9 : 0));
  const edges = (run.data.intervals?.partition ?? []).flatMap((/** @type {any} */ { from, to }) => (to === null ? [from] : [from, to]));
  const taken = [
    ...run.order.map((id) => box(-12, end, lanes.y(id), 0.5)),
    ...stretches.filter(({ state, from }) => state !== "down" && from <= until)
      .map(({ member, from, to }) => box(scale.toX(from), to === null ? end : scale.toX(to), lanes.y(member), half)),
    ...signs.map(around),
    ...edges.map((/** @type {number} */ t) => ({ x0: scale.toX(t) - 1, x1: scale.toX(t) + 1, y0: lanes.top, y1: lanes.bottom })),
  ];
  const wanted = notes(run).filter(({ step, rank }) => step < steps.length && (rank === 0 || (!compact && !mass && lanes.pitch >= 18)));
  const short = compact ? wanted.map((note) => ({ ...note, text: note.text.replace(/^\w+: /, ""), room: 6 })) : wanted;
  const labels = place(short.slice(0, 400), {
    at: ({ step, member }) => ({ x: scale.toX(run.steps[step].at), y: lanes.y(member) }),
    measure: (text) => measure(text, "label"),
    arrows: mass ? [] : arrows,
    taken,
    height: compact ? 10 : 14,
    bounds: { x0: -10, x1: end, y0: compact ? 0 : 14, y1: lanes.bottom + 4 },
  });
  return labels.map(({ step, text, x, y, anchor, rank }) => s("text", { class: `rank-${rank}`, x, y, "text-anchor": anchor, "data-step": step }, text));
}

/** What a stretch of time is spent on, across the lanes, where there is room. @param {Picture} picture @param {{ from: number, to: number, text: string }[]} spans */
export function drawSpans({ scale, lanes }, spans) {
  return spans.filter(({ from, to, text }) => scale.toX(to) - scale.toX(from) > measure(text, "label") + 8).map(({ from, to, text }) =>
    s("text", { class: "span", x: (scale.toX(from) + scale.toX(to)) / 2, y: (lanes.top + lanes.bottom) / 2 + 4, "text-anchor": "middle" }, text));
}
