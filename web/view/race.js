/** Race: the same fault, two to four algorithms, one clock. */

import { button, h, s, set } from "../dom.js";
import * as race from "../model/race.js";
import { parseTime, short, time } from "../model/words.js";
import { showMenu } from "../part/commands.js";
import { Lane } from "../part/lane.js";
import { FLIGHT, RaceClock } from "../part/raceclock.js";
import { RaceFoot } from "../part/racefoot.js";
import { Sentence } from "../part/sentence.js";
import { print, withOwn } from "../url.js";

/** @param {HTMLElement} root @param {import("../main.js").App} app */
export function mount(root, app) {
  const view = new Race(root, app);
  return { update: (/** @type {any} */ query) => view.update(query), commands: () => view.commands(), leave: () => view.leave() };
}

const PLAY = "M4,2L12,7L4,12Z";
const PAUSE = "M4,2V12M10,2V12";

class Race {
  /** @param {HTMLElement} root @param {import("../main.js").App} app */
  constructor(root, app) {
    this.app = app;
    this.clock = new RaceClock({ changed: (settled) => this.changed(settled) });
    this.sentence = new Sentence({ onEdit: ({ flag, value }) => this.change(race.edit(this.flags, flag, value)) });
    this.title = h("h1", { class: "title" });
    this.adds = button("Add an algorithm", () => this.offer());
    this.swaps = button("Partition instead", () => this.change(race.swapFault(this.flags)));
    this.icon = s("path", { d: PLAY });
    this.plays = h("button", { type: "button", class: "primary race-play", "aria-label": "Play", on: { click: () => this.clock.toggle() } }, s("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, this.icon));
    this.time = h("strong", {});
    this.pace = h("span", { class: "note" });
    this.slider = /** @type {HTMLInputElement} */ (h("input", { type: "range", class: "race-slider", min: 0, max: 1000, "aria-label": "Time", on: { input: () => this.clock.go((Number(this.slider.value) / 1000) * this.clock.end, false), change: () => this.changed(true) } }));
    this.lanesBox = h("div", { class: "race-lanes" });
    this.third = h("span", { class: "race-head" });
    this.counted = ["Downtime", "Messages"].map((name) => h("span", { class: "race-head" }, name));
    this.foot = new RaceFoot();
    this.now = h("div", { class: "race-now", "aria-hidden": "true" });
    this.board = h("div", { class: "race-board" },
      h("div", { class: "race-top" },
        h("div", { class: "race-clock" }, this.plays, this.time, this.pace), this.slider,
        ...this.counted, this.third),
      this.lanesBox, this.foot.axis, this.foot.element, this.now);
    root.append(
      h("header", { class: "race-title" }, h("div", {}, this.title, this.sentence.element), h("div", { class: "buttons" }, this.adds, this.swaps)),
      this.board);
    /** @type {Lane[]} */
    this.lanes = [];
    /** @type {import("../model/race.js").Flags} */
    this.flags = [];
    /** @type {string[]} */
    this.names = [];
    this.key = "";
    this.written = 0;
    this.drag();
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(this.board);
  }

  /** @param {import("../url.js").Query} query */
  async update(query) {
    this.query = query;
    const { algorithms } = query.own;
    this.names = algorithms ? [...new Set(algorithms.split(","))].slice(0, race.MOST) : race.DEFAULT.algorithms;
    this.flags = query.flags.length ? query.flags : race.DEFAULT.flags;
    this.excludes = false;
    const key = JSON.stringify([this.names, this.flags]);
    if (key !== this.key) {
      this.key = key;
      await this.load(key);
      if (this.query !== query) return;
    }
    const t = parseTime(query.own.t);
    if (!this.clock.playing) this.clock.t = Math.min(t ?? this.clock.end, this.clock.end);
    this.draw();
  }

  /** Runs every lane. @param {string} key */
  async load(key) {
    this.clock.stop();
    const { flags } = this;
    /** @type {any} */
    const catalogue = await this.app.simulation.catalogue().catch((/** @type {Error} */ error) => this.sentence.refuse(error.message, null, []));
    if (this.key !== key || !catalogue) return;
    const known = new Map(catalogue.algorithms.map((/** @type {any} */ one) => [one.name, one]));
    this.catalogue = catalogue;
    const before = new Map(this.lanes.map((lane) => [lane.algorithm.name, lane]));
    // Elections race among themselves, and so do algorithms of mutual exclusion: the first name says which.
    const purpose = known.get(this.names.find((name) => known.has(name)) ?? "")?.purpose;
    this.excludes = purpose === "excludes";
    if (this.excludes && flags === race.DEFAULT.flags) return this.change(race.REQUESTS);
    this.lanes = this.names.filter((name) => known.get(name)?.purpose === purpose).map((name) => before.get(name) ?? new Lane(known.get(name), { remove: () => this.remove(name), onTime: (t) => this.clock.go(t, false) }));
    this.lanesBox.replaceChildren(...this.lanes.map((lane) => lane.element));
    for (const { picture } of this.lanes) this.observer.observe(picture);
    this.foot.values = [];
    const modes = [...new Map(this.lanes.flatMap(({ algorithm }) => /** @type {any} */ (algorithm).modes).map((mode) => [mode.name, mode])).values()];
    set(this.title, { text: race.title(flags, this.lanes.length) });
    set(this.swaps, { hidden: this.excludes });
    set(this.swaps, { text: race.isPartition(flags) ? "Crash instead" : "Partition instead" });
    set(this.third, { text: this.excludes ? "Two inside" : race.isPartition(flags) ? "Overlap" : "In a partition" });
    set(this.counted[0], { text: this.excludes ? "Waiting" : "Downtime" });
    const fault = race.isPartition(flags) ? "partition" : race.flag(flags, "crash") === null ? null : "crash";
    for (const head of this.counted) set(head, { title: fault && `From the ${fault} on` });
    set(this.adds, { disabled: this.lanes.length >= race.MOST });
    this.sentence.show(race.sentence(flags, modes));
    const problems = await Promise.all(this.lanes.map((lane) => this.runLane(lane, flags)));
    if (this.key !== key) return;
    if (this.refuse(problems, flags)) return;
    const runs = this.running().map(({ run }) => run);
    this.clock.load(runs, runs.length ? race.horizon(runs) : 1);
    this.app.shown = { lanes: this.running().map(({ algorithm, run }) => ({ algorithm: algorithm.name, hash: run.data.hash, flags: run.data.source.flags, metrics: run.data.metrics })) };
    for (const { picture, run } of this.running()) picture.style.setProperty("--lanes", String(run.order.length));
    this.board.style.setProperty("--count", String(this.lanes.length));
    this.foot.load(this.running(), this.clock.end, flags);
    this.measure();
    this.part(key, flags);
  }

  /** @param {Lane} lane @param {import("../model/race.js").Flags} flags @returns {Promise<any>} what was wrong */
  async runLane(lane, flags) {
    lane.element.classList.add("loading");
    try {
      lane.load(await this.app.simulation.run(this.source(lane, flags)), race.flag(flags, "mode"));
      return null;
    } catch (error) {
      return error;
    }
  }

  /** If no lane can run, the sentence is at fault and the old lanes stay, dimmed. If one cannot, it says so. @param {any[]} problems @param {import("../model/race.js").Flags} flags */
  refuse(problems, flags) {
    const found = problems.find((problem) => problem !== null);
    const all = problems.every((problem) => problem !== null);
    if (found && all) this.sentence.refuse(found.message, found.key === "crash" || found.key === "partition" ? "at" : found.key ?? null, flags);
    else problems.forEach((problem, place) => problem && this.lanes[place].refuse(problem.message));
    return found !== undefined && all;
  }

  /** What a partition would do, from runs of their own. @param {string} key @param {import("../model/race.js").Flags} flags */
  async part(key, flags) {
    if (this.excludes) return this.running().forEach((lane) => lane.judgeEntries());
    const here = race.isPartition(flags);
    const parted = here ? flags : race.swapFault(flags);
    for (const lane of this.running()) {
      const { guarantees } = /** @type {any} */ (lane.algorithm);
      const promise = guarantees?.find?.((/** @type {any} */ one) => one.mode === lane.run.data.mode)?.partition ?? "";
      lane.judge(null, here, promise);
      this.app.simulation.run(this.source(lane, parted)).then((run) => this.key === key && lane.judge(run, here, promise), () => {});
    }
  }

  /** @param {Lane} lane @param {import("../model/race.js").Flags} flags */
  source(lane, flags) {
    return { gallery: null, toml: null, flags: race.laneFlags(flags, /** @type {any} */ (lane.algorithm)) };
  }

  /** @returns {(Lane & { run: import("../model/run.js").Run })[]} */
  running() {
    return /** @type {any} */ (this.lanes.filter(({ run }) => run));
  }

  /** Finds the places of what depends on the size. */
  measure() {
    const [lane] = this.running();
    if (!lane || !this.foot.series.length) return;
    const picture = lane.picture.getBoundingClientRect();
    // Not laid out yet: the observer calls again.
    if (picture.width < 40) return;
    // A diagram hears of its own size only after this: runs that are already known are drawn before the first layout.
    for (const { diagram } of this.running()) diagram.resize(diagram.element.getBoundingClientRect());
    this.draw();
    const board = this.board.getBoundingClientRect();
    this.zero = picture.left - board.left + lane.diagram.xOf(0);
    this.wide = Math.max(1, lane.diagram.xOf(this.clock.end) - lane.diagram.xOf(0));
    this.foot.measure(lane, { end: this.clock.end, beside: board.right - picture.right - 24, flags: this.flags });
    this.move();
  }

  /** Everything that changes with time. */
  draw() {
    const { t, end } = this.clock;
    const lanes = this.running();
    const over = t >= end;
    const of = (/** @type {import("../model/run.js").Run} */ run) => race.totals(run, end, race.countsFrom(run, this.flags));
    // A leader on each side is no short downtime.
    const split = lanes.some(({ run }) => run.data.metrics.two_leaders);
    const shortest = split ? lanes : race.best(lanes, ({ run }) => of(run).downtime);
    const fewest = race.best(lanes, ({ run }) => of(run).messages);
    for (const lane of lanes) {
      const wait = race.waiting(lane.run, this.flags);
      lane.show(t, { domain: [0, end], spans: wait ? [wait] : [], begin: race.countsFrom(lane.run, this.flags) });
      lane.praise({ shortest: over && shortest.length < lanes.length && shortest.includes(lane), fewest: over && fewest.length < lanes.length && fewest.includes(lane) });
      set(lane.link, { href: this.address(lane) });
      set(lane.removal, { hidden: this.lanes.length <= 2 });
    }
    this.move();
  }

  /** Moves the now line. */
  move() {
    const { t, end, playing, speed, flight } = this.clock;
    const x = (this.zero ?? 0) + (this.wide ?? 0) * (t / end);
    this.now.style.setProperty("transform", `translateX(${x}px)`);
    set(this.now, { hidden: this.zero === undefined || !this.running().length });
    set(this.time, { text: time(Math.round(t / 1e5) * 1e5).replace(/^(\d+) /, "$1.0 ") });
    set(this.pace, { text: `${time(flight)} takes ${short(FLIGHT / speed / 1000)} s` });
    set(this.icon, { d: playing ? PAUSE : PLAY });
    set(this.plays, { "aria-label": playing ? "Pause" : "Play", title: playing ? "Pause (Space)" : "Play (Space)", class: `primary race-play${playing ? " on" : ""}` });
    if (document.activeElement !== this.slider || playing) this.slider.value = String(Math.round((t / end) * 1000));
    set(this.slider, { "aria-valuetext": race.tell(t, this.running(), this.flags) });
    this.foot.move(t, end);
  }

  /** The clock has moved. @param {boolean} settled */
  changed(settled) {
    this.draw();
    const now = performance.now();
    if (!settled && now - this.written < 250) return;
    this.written = now;
    const { t, end, playing } = this.clock;
    if (!playing || settled) this.app.navigate(withOwn(this.app.query, { t: t >= end ? null : race.printTime(t) }), { replace: true });
  }

  /** Where a lane's name leads: the same run at the same time. @param {Lane & { run: import("../model/run.js").Run }} lane */
  address(lane) {
    const { s: done } = lane.run.atTime(this.clock.t);
    const within = this.clock.t > lane.run.atStep(done).t && this.clock.t < this.clock.end;
    return print({ view: "sim", path: "", flags: this.source(lane, this.flags).flags, own: { s: String(done), ...(within ? { t: String(Math.round(this.clock.t)) } : {}) } });
  }

  /** @param {import("../model/race.js").Flags} flags */
  change(flags) {
    this.app.navigate({ ...this.app.query, flags, own: { algorithms: this.names.join(",") } });
  }

  /** @param {string} name */
  remove(name) {
    this.app.navigate({ ...this.app.query, flags: this.flags, own: { algorithms: this.names.filter((one) => one !== name).join(",") } });
  }

  /** The algorithms that do not run yet. */
  offer() {
    const box = this.adds.getBoundingClientRect();
    showMenu(this.additions(), { x: box.left, y: box.bottom + 4 }, "Add an algorithm");
  }

  additions() {
    const alike = (/** @type {string} */ purpose) => (purpose === "excludes") === this.excludes;
    const rest = /** @type {any[]} */ (this.catalogue?.algorithms ?? []).filter(({ name, purpose }) => alike(purpose) && !this.names.includes(name));
    return rest.map(({ name, title }) => ({
      title, off: this.lanes.length >= race.MOST,
      run: () => this.app.navigate({ ...this.app.query, flags: this.flags, own: { algorithms: [...this.names, name].join(",") } }),
    }));
  }

  /** The now line can be dragged, and so can the axis. */
  drag() {
    const to = (/** @type {PointerEvent} */ event) => {
      const x = event.clientX - this.board.getBoundingClientRect().left - (this.zero ?? 0);
      this.clock.go((x / (this.wide ?? 1)) * this.clock.end, event.type === "pointerup");
    };
    for (const element of [this.now, this.foot.axis]) {
      element.addEventListener("pointerdown", (event) => {
        element.setPointerCapture(event.pointerId);
        to(event);
      });
      element.addEventListener("pointermove", (event) => element.hasPointerCapture(event.pointerId) && to(event));
      element.addEventListener("pointerup", to);
    }
  }

  commands() {
    const { clock } = this;
    const group = "Race";
    return [
      { key: "Space", title: clock.playing ? "Pause" : "Play", group, run: () => clock.toggle() },
      { key: "→", title: "Next event", group, run: () => clock.step(1) },
      { key: "←", title: "Last event", group, run: () => clock.step(-1) },
      { key: "Home", title: "To the start", group, run: () => clock.go(0) },
      { key: "End", title: "To the end", group, run: () => clock.go(clock.end) },
      { key: "Shift+↑", title: "Twice the speed", group, run: () => clock.changeSpeed(2) },
      { key: "Shift+↓", title: "Half the speed", group, run: () => clock.changeSpeed(0.5) },
      ...(this.excludes ? [] : [{ key: "P", title: race.isPartition(this.flags) ? "Crash instead" : "Partition instead", group, run: () => this.change(race.swapFault(this.flags)) }]),
      ...this.additions().map((one) => ({ ...one, title: `Add ${one.title}`, group })),
      ...this.running().map((lane) => ({ title: `Open ${lane.title} in Simulate`, group, run: () => void (location.hash = this.address(lane)) })),
    ];
  }

  leave() {
    this.clock.stop();
    // What is still being computed is not for the view that comes next.
    this.key = "";
    this.query = undefined;
    this.observer.disconnect();
  }
}
