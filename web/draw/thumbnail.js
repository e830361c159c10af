/** A run at the size of a card: the same diagram without texts, twelve lanes at most. */

import { s } from "../dom.js";
import { arrows, lanes, stretches, timeScale } from "../model/layout.js";
import { drawArrow } from "./arrows.js";
import { drawGround } from "./ground.js";
import { drawSign, signOf } from "./marks.js";
import { needHatching } from "./patterns.js";

const [WIDTH, HEIGHT, MOST_LANES, MOST_ARROWS] = [288, 80, 12, 140];

/** @param {import("../model/run.js").Run} run @param {number} [until] how many steps may be seen @returns {SVGElement} */
export function thumbnail(run, until = run.length) {
  needHatching();
  const shown = busiest(run);
  const few = beginning(run, shown, until);
  const rows = lanes(few, HEIGHT, { top: 0, most: 18 });
  const scale = timeScale(few, WIDTH - 24, { fold: 22 });
  const drawn = arrows(few, rows, scale, { background: false, bends: false });
  const steps = few.steps.filter((step) => step.member !== null && shown.has(step.member));
  const top = (HEIGHT - (rows.bottom - rows.top)) / 2;
  const picture = {
    run: few, scale, lanes: rows, arrows: drawn, steps, until: Infinity, end: WIDTH - 12, compact: true, strip: false,
    stretches: stretches(few).filter(({ member }) => shown.has(member)),
  };
  const size = Math.min(0.6, rows.pitch / 20);
  return s("svg", { class: "thumbnail diagram", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "xMidYMid meet", "aria-hidden": "true" },
    s("g", { transform: `translate(14 ${top})` },
      s("g", { class: "layer ground" }, drawGround(picture)),
      s("g", { class: "layer arrows compact" }, drawn.map((arrow) => drawArrow(arrow, { thin: drawn.length > 40, small: 0.55 }))),
      s("g", { class: "layer marks" }, steps.map((step) => {
        const sign = signOf(step);
        if (!sign || sign === "timer" || sign === "suspect" || sign === "trust") return null;
        return drawSign(sign, scale.toX(step.at), rows.y(/** @type {number} */ (step.member)), size, step.i);
      }))));
}

/** The run up to where a card would be full, of some members only. @param {import("../model/run.js").Run} run @param {Set<number>} shown @param {number} until @returns {import("../model/run.js").Run} */
function beginning(run, shown, until) {
  const within = run.messages.filter(({ kind, from, to, by }) => by < until && !run.kinds[kind].background && shown.has(from) && shown.has(to));
  const messages = within.slice(0, MOST_ARROWS);
  const order = run.order.filter((id) => shown.has(id));
  if (within.length <= MOST_ARROWS && until >= run.length) return Object.assign(Object.create(run), { order, messages });
  const full = within.length > MOST_ARROWS ? messages[MOST_ARROWS - 1].sent + run.d : Infinity;
  const end = Math.min(full, run.steps[until - 1].at);
  const intervals = Object.fromEntries(Object.entries(run.data.intervals).map(([name, list]) => [name,
    list.filter((/** @type {any} */ one) => (one.from ?? one[0]) < Math.max(end, 1)).map((/** @type {any} */ one) => ((one.to ?? end) > end ? { ...one, to: null } : one))]));
  return Object.assign(Object.create(run), { order, messages, end, steps: run.steps.slice(0, until).filter(({ at }) => at <= end), data: { ...run.data, intervals } });
}

/** The members that matter most, where there are more than a card can show. @param {import("../model/run.js").Run} run */
function busiest(run) {
  if (run.order.length <= MOST_LANES) return new Set(run.order);
  /** @type {Map<number, number>} */
  const counts = new Map(run.order.map((id) => [id, 0]));
  for (const { from, to, kind } of run.messages) {
    if (run.kinds[kind].background) continue;
    counts.set(from, (counts.get(from) ?? 0) + 1);
    counts.set(to, (counts.get(to) ?? 0) + 1);
  }
  return new Set([...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_LANES).map(([id]) => id));
}
