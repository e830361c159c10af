/**
 * A run on screen: the members, the space-time diagram and why things happened, above one player. Simulate shows the run of
 * an address here, Check the run that the checker found. Two runs share one axis and one player.
 */

import { h, region, set } from "../dom.js";
import { Diagram } from "../draw/diagram.js";
import { legend } from "../draw/legend.js";
import { MembersPicture } from "../draw/members.js";
import { faultTime, flagTime, positionBeside } from "../model/branch.js";
import { membersShown, rolesShown, signsShown } from "../model/picture.js";
import { kindOf, winner } from "../model/reason.js";
import { list, many } from "../model/words.js";
import { Player } from "./player.js";
import { Side } from "./side.js";
import { Transport } from "./transport.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/run.js").Position} Position
 *
 * @typedef {object} Loaded
 * @property {Run} run
 * @property {Run | null} [beside] the run without the changes
 * @property {number | null} [divergence] the first step in which they differ
 * @property {string[]} [changes] what was done, in words
 * @property {number} [kept] how many of these the run beside it has too
 * @property {string} [question] what the scenario asks before it is played
 * @property {boolean} [hidden] the future is not shown, nor what would tell it
 *
 * @typedef {object} Told
 * @property {(position: Position, settled: boolean) => void} onMove
 * @property {(selection: string | null) => void} onSelect
 * @property {(selection: string | null, at: { x: number, y: number }) => void} [onMenu]
 * @property {(id: number, at: { x: number, y: number }) => void} [onFlight]
 * @property {(...flags: [string, string][]) => void} [onChange] changes history; without it the run is only looked at
 * @property {(way: 1 | -1) => void} onWalk
 * @property {(i: number) => void} onStep
 * @property {(kept: number) => void} [onBase] compare with the run that has so many of the changes
 */

/** The panels, in the order in which a phone swipes through them. */
const PANELS = { members: "Members", diagram: "Diagram", why: "Why", count: "Count" };

export class Stage {
  /** @param {Told} told */
  constructor(told) {
    this.told = told;
    this.player = new Player({ changed: (settled) => this.changed(settled) });
    this.transport = new Transport(this.player);
    this.members = new MembersPicture({
      onSelect: told.onSelect,
      onMenu: told.onMenu,
      onFlight: told.onFlight,
      onCut: told.onChange && ((a, b, oneWay) => this.cut(a, b, oneWay)),
      onPartition: told.onChange && ((groups) => this.part(groups)),
    });
    const picture = () => new Diagram({
      onSelect: told.onSelect, onMenu: told.onMenu,
      onTime: (/** @type {number} */ t) => this.player.run && this.player.go(this.player.run.atTime(t), { settled: false }),
    });
    this.diagram = picture();
    this.diagramBeside = picture();
    this.side = new Side(told, (position) => { this.player.pause(false); this.player.go(position); });
    this.flying = h("p", { class: "note" });
    this.about = h("p", { class: "note" });
    this.membersLegend = h("div", { class: "signs" });
    this.diagramLegend = h("div", { class: "signs" });
    const membersRegion = region("Members", { class: "panel members-panel", "data-panel": "members" }, this.members.element, this.membersLegend);
    membersRegion.querySelector(".head")?.append(this.flying);
    this.nameA = h("div", { class: "run-name" });
    this.nameB = h("div", { class: "run-name" });
    const diagramRegion = region("Space-time", { class: "panel diagram-panel", "data-panel": "diagram" },
      h("div", { class: "diagram-slot a" }, this.nameA, this.diagramBeside.element),
      h("div", { class: "diagram-slot b" }, this.nameB, this.diagram.element),
      this.diagramLegend);
    diagramRegion.querySelector(".head")?.append(this.about);
    this.instead = h("div", { class: "panel instead", hidden: true });
    this.columns = h("div", { class: "columns" }, membersRegion, diagramRegion, this.instead, this.side.element);
    this.tabs = h("nav", { class: "panel-tabs", "aria-label": "Panels" }, Object.entries(PANELS).map(([name, title]) =>
      h("button", { type: "button", class: "plain", "data-for": name, on: { click: () => this.turnTo(name) } }, title)));
    this.columns.addEventListener("scroll", () => this.markTab(), { passive: true });
    this.element = h("div", { class: "stage" }, this.tabs, this.columns, this.transport.element);
    /** @type {Loaded | null} */
    this.loaded = null;
    /** @type {string | null} */
    this.selection = null;
    this.legends = "";
    this.markTab();
  }

  /** On a phone, where one panel is seen at a time. @param {string} name @param {ScrollBehavior} [behavior] */
  turnTo(name, behavior = "smooth") {
    const panel = this.columns.querySelector(`[data-panel=${name}]`);
    if (!panel || getComputedStyle(this.tabs).display === "none") return;
    const away = panel.getBoundingClientRect().left - this.columns.getBoundingClientRect().left;
    this.columns.scrollTo({ left: this.columns.scrollLeft + away, behavior }); // scrollBy would stop at the next panel
  }

  /** A question is before the run: then the pictures are what is looked at. */
  play() {
    this.turnTo("diagram");
    this.player.play();
  }

  markTab() {
    const at = Math.round(this.columns.scrollLeft / Math.max(1, this.columns.clientWidth));
    [...this.tabs.children].forEach((tab, place) => set(tab, { "aria-current": place === at ? "true" : null }));
  }

  /** @param {Loaded} loaded @param {Position} position @param {string | null} selection */
  load(loaded, position, selection) {
    const before = this.loaded;
    const changedRuns = before?.run !== loaded.run || before?.beside !== loaded.beside;
    this.loaded = loaded;
    this.selection = selection;
    const { run, beside = null, divergence = null, hidden = false } = loaded;
    if (beside) this.nameRuns(loaded);
    set(this.element, { "data-branch": String(beside !== null), "data-hidden": String(hidden) });
    if (changedRuns) this.player.load(run, beside, position);
    else if (position.s !== this.player.position.s || position.t !== this.player.position.t) this.player.go(position, { slide: true, settled: false });
    this.transport.load({ run, beside, divergence, hidden });
    this.side.load(loaded);
    this.draw();
  }

  /** What A is and what was done in B; with several changes A can be any run between. @param {Loaded} loaded */
  nameRuns({ changes = [], kept = 0 }) {
    const names = ["as recorded", ...changes.map((_, place) => (place ? `with the first ${place + 1}` : "with the first change"))];
    const others = names.slice(0, -1).map((name, place) => h("button", {
      type: "button", class: "plain", "aria-pressed": String(place === kept), on: { click: () => this.told.onBase?.(place) },
    }, name));
    this.nameA.replaceChildren(h("strong", {}, "A"), ...(others.length > 1 ? others : [h("span", {}, names[0])]));
    this.nameB.replaceChildren(h("strong", {}, "B"), h("span", {}, list(changes.slice(kept))), h("span", { class: "note" }, "grey: as in A; different from the dashed line on"));
  }

  /** Puts something in place of the pictures; null brings them back. @param {Element | null} element */
  replacePictures(element) {
    this.instead.hidden = !element;
    set(this.element, { "data-instead": String(element !== null) });
    if (element) this.instead.replaceChildren(element);
    else this.instead.replaceChildren();
  }

  /** The player has moved. @param {boolean} settled */
  changed(settled) {
    this.draw();
    this.told.onMove(this.player.position, settled);
  }

  draw() {
    const { loaded, selection, player } = this;
    if (!loaded) return;
    const { run, beside = null, divergence = null, hidden = false } = loaded;
    const position = player.shown;
    const shown = membersShown(run, position, selection);
    this.members.show(/** @type {any} */ (shown));
    set(this.flying, { text: shown.flights.length ? `${many(shown.flights.length, "message")} in flight` : "" });
    const future = /** @type {"hidden" | "veiled"} */ (hidden ? "hidden" : "veiled");
    if (beside) {
      const at = positionBeside(beside, divergence, position);
      const [mark, name] = [this.mark(), { now: true, strip: true, future: /** @type {const} */ ("veiled") }];
      this.diagramBeside.show({ ...name, run: beside, beside: [run], position: at, selection: this.selectionBeside(), axis: false, mark });
      this.diagram.show({ ...name, run, beside: [beside], position, selection, shared: divergence, mark });
    } else {
      this.diagram.show({ run, position, selection, future, now: true, strip: false });
    }
    this.drawLegends(run, position, hidden);
    this.side.show(position, selection);
    this.transport.update();
  }

  /** Where the runs part. What was done stands above the picture, where no line runs through it. */
  mark() {
    const { run, beside, divergence } = /** @type {Loaded} */ (this.loaded);
    if (!beside || divergence === null || divergence === undefined) return null;
    const at = Math.min(...[run, beside].map((one) => one.steps[divergence]?.at ?? Infinity));
    return Number.isFinite(at) ? { at, text: "" } : null;
  }

  /** What is selected in B is selected in A as well, if it is there. */
  selectionBeside() {
    const { selection } = this;
    if (!selection || /^\d+$/.test(selection)) return selection;
    const { divergence, run, beside } = /** @type {Loaded} */ (this.loaded);
    if (selection.startsWith("s")) return Number(selection.slice(1)) < (divergence ?? 0) ? selection : null;
    const ref = run.byId.get(Number(selection.slice(1)))?.ref;
    const same = beside?.messages.find((message) => message.ref === ref);
    return same ? `m${same.id}` : null;
  }

  /** @param {Run} run @param {Position} position @param {boolean} hidden */
  drawLegends(run, position, hidden) {
    const { selection } = this;
    set(this.about, { text: selection ? `causal past of ${this.nameOf(selection)}` : "" });
    const beside = Boolean(this.loaded?.beside);
    const key = `${run.data.hash} ${position.s} ${selection !== null} ${beside} ${hidden}`;
    if (key === this.legends) return;
    this.legends = key;
    this.membersLegend.replaceChildren(legend({ roles: rolesShown(run, position) }));
    this.diagramLegend.replaceChildren(legend(signsShown(run, { selected: selection !== null, beside, until: hidden ? position.s : run.length })));
  }

  /** @param {string} selection */
  nameOf(selection) {
    const { run } = /** @type {Loaded} */ (this.loaded);
    if (selection.startsWith("m")) {
      const message = run.byId.get(Number(selection.slice(1)));
      return message ? `${kindOf(run, message)} ${run.name(message.from)} → ${run.name(message.to)}` : "the selection";
    }
    if (selection.startsWith("s")) {
      const step = run.steps[Number(selection.slice(1))];
      const first = winner(step);
      return first === null ? `step ${step.i + 1}` : `${run.name(first)} ${run.excludes ? "enters" : "leads"}`;
    }
    return run.name(Number(selection));
  }

  /** The time of a fault that is to happen now, as a flag writes it. */
  now() {
    return this.loaded ? flagTime(faultTime(this.loaded.run, this.player.position)) : "0ms";
  }

  /** @param {string} a @param {string} b @param {boolean} oneWay */
  cut(a, b, oneWay) {
    const links = oneWay ? [`${a}>${b}`] : [`${a}>${b}`, `${b}>${a}`];
    this.told.onChange?.(...links.map((link) => /** @type {[string, string]} */ (["cut", `${link}@${this.now()}`])));
  }

  /** @param {string[][]} groups */
  part(groups) {
    this.told.onChange?.(["partition", `${groups.map((group) => group.join(",")).join("/")}@${this.now()}`]);
  }

  leave() {
    this.player.stop();
  }
}
