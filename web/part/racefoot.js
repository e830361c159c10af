/** What lies below the lanes of a race: the axis, the curves of messages, a verdict in words, and the legend. */

import { h, s, set } from "../dom.js";
import { at, curves, DASHES } from "../draw/curves.js";
import { legend } from "../draw/legend.js";
import { FAMILIES } from "../draw/signs.js";
import * as race from "../model/race.js";
import { count } from "../model/words.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("./lane.js").Lane & { run: Run }} Running
 */

export class RaceFoot {
  constructor() {
    this.axis = h("div", { class: "race-axis", "aria-hidden": "true" });
    this.curveBox = h("div", { class: "race-curves" });
    this.words = h("p", { class: "small soft" });
    this.legend = h("div", {});
    this.element = h("div", { class: "race-foot" },
      h("div", {}, h("h2", {}, "Messages sent"), this.words), this.curveBox,
      h("div", { class: "race-key" }, h("h2", {}, "Legend"), this.legend));
    this.veil = s("rect", { class: "veil veiled", y: 0, height: 150, width: 0 });
    /** @type {{ name: string, points: [number, number][], dash: string, strong: boolean }[]} */
    this.series = [];
    /** Texts of the curves' values. @type {Element[]} */
    this.values = [];
    this.room = { left: 0, wide: 1 };
  }

  /** @param {Running[]} lanes @param {number} end @param {race.Flags} flags */
  load(lanes, end, flags) {
    this.legend.replaceChildren(legend(signs(lanes.map(({ run }) => run), race.isPartition(flags))));
    this.words.replaceChildren(...race.verdict(lanes, end, flags).flatMap(({ strong, rest }) => [h("strong", {}, strong), rest]));
    const sent = (/** @type {Run} */ run) => race.totals(run, end, race.countsFrom(run, flags)).messages;
    const most = Math.max(...lanes.map(({ run }) => sent(run)));
    this.series = lanes.map(({ title, run }, place) => ({
      name: title, points: race.sentOverTime(run, end, race.countsFrom(run, flags)), dash: DASHES[place % DASHES.length], strong: sent(run) === most,
    }));
    this.values = [];
  }

  /** Draws what depends on the size. @param {Running} lane @param {{ end: number, beside: number, flags: race.Flags }} board `beside` is what is free at the right of the lanes */
  measure({ diagram, picture, run }, { end, beside, flags }) {
    const width = picture.clientWidth;
    const [zero, last] = [diagram.xOf(0), diagram.xOf(end)];
    // On a phone there is no room beside the lanes: the names are within.
    const names = beside > 90 ? 120 : 0;
    const [left, right] = names ? [zero, names + width - last] : [34, 118];
    const ticks = diagram.picture?.scale.ticks(64) ?? [];
    const height = Math.max(90, Math.min(150, this.curveBox.clientHeight || 120));
    const drawn = curves({ series: this.series, x: [0, end], width: width + names, height, left, right, ticks: ticks.map(({ t }) => t) });
    drawn.insertBefore(this.veil, /** @type {Element} */ (drawn.querySelector(".end")).parentElement);
    this.values = [...drawn.querySelectorAll(".value")];
    this.room = { left, wide: width + names - left - right };
    this.curveBox.replaceChildren(drawn);
    const unit = diagram.picture?.scale.size(64).name ?? "ms";
    const marks = ticks.map(({ x, text }) => ({ x: x + zero, text: `${text} ${unit}` }));
    const fault = run.steps.find(({ type }) => type === "fault");
    this.drawAxis(marks, fault ? { x: diagram.xOf(fault.at), text: race.isPartition(flags) ? "partition" : "crash" } : null);
  }

  /** @param {{ x: number, text: string }[]} marks @param {{ x: number, text: string } | null} fault */
  drawAxis(marks, fault) {
    const shown = fault ? [...marks.filter(({ x }) => Math.abs(x - fault.x) > 44), fault] : marks;
    this.axis.replaceChildren(...shown.map(({ x, text }) => h("span", { style: { left: `${x}px` } }, text)));
  }

  /** @param {number} t @param {number} end */
  move(t, end) {
    const { left, wide } = this.room;
    set(this.veil, { x: left + wide * (t / end), width: Math.max(0, wide * (1 - t / end)) });
    this.values.forEach((value, place) => set(value, { text: count(at(this.series[place].points, t)) }));
  }
}

/** What is on screen, for the legend. @param {Run[]} runs @param {boolean} parted */
function signs(runs, parted) {
  /** @type {Set<import("../draw/signs.js").Family>} */
  const families = new Set();
  for (const run of runs) for (const { kind } of run.messages) if (!run.kinds[kind].background) families.add(run.kinds[kind].family);
  const any = (/** @type {(run: Run) => boolean} */ test) => runs.some(test);
  const marks = /** @type {[string, boolean][]} */ ([
    ["leads", any((run) => !run.excludes)], ["campaigns", any((run) => !run.excludes)], ["inside", any((run) => run.excludes)], ["waits", any((run) => run.excludes)], ["lease", any((run) => run.data.leases)],
    ["lost", any((run) => run.messages.some(({ fate }) => fate === "lost"))], ["missed", any((run) => run.data.metrics.to_down > 0)],
    ["downtime", any((run) => run.data.intervals.downtime.length > 0)], ["overlap", any((run) => !run.excludes && run.data.intervals.overlap.length > 0)], ["together", any((run) => run.excludes && run.data.intervals.overlap.length > 0)], ["partition", parted],
  ]);
  return { kinds: [...families].map((family) => ({ family, name: FAMILIES[family] })), marks: marks.filter(([, shown]) => shown).map(([name]) => name) };
}
