/**
 * Simulate: one run, or two beside each other. Everything on screen follows from the address, and every control changes the
 * address (part/hand.js). While the time runs, the address follows at most four times a second.
 */

import { set } from "../dom.js";
import { FIRST, memberCount, notesOf, positionIn, questionOf, raceOf, selectionIn, staleness } from "../model/address.js";
import { baseFlags, branched, changes, kept, without } from "../model/branch.js";
import { counted } from "../model/picture.js";
import { divergence } from "../model/run.js";
import { stopOf } from "../model/tour.js";
import { showExport } from "../part/export.js";
import { Hand } from "../part/hand.js";
import { Heading } from "../part/heading.js";
import { Follower } from "../part/look.js";
import { closePopover } from "../part/popover.js";
import { Predict } from "../part/predict.js";
import { runCommands } from "../part/runcommands.js";
import { pack, unpack } from "../part/share.js";
import { Stage } from "../part/stage.js";
import { TourStrip } from "../part/tour.js";
import { changeCommands } from "../part/whatif.js";
import { source, withOwn } from "../url.js";

/**
 * @typedef {import("../url.js").Query} Query
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../part/commands.js").Command} Command
 */

/** @param {HTMLElement} root @param {import("../main.js").App} app */
export const mount = (root, app) => new Simulate(root, app);

export class Simulate {
  /** @param {HTMLElement} root @param {import("../main.js").App} app */
  constructor(root, app) {
    this.app = app;
    this.query = app.query;
    /** The scenario that the address names, and the one that is on screen. */
    this.key = "";
    this.loadedKey = "";
    /** @type {Run | null} */
    this.run = null;
    /** @type {Run | null} */
    this.beside = null;
    /** @type {number | null} */
    this.divergence = null;
    this.explained = /** @type {any} */ (null);
    this.source = /** @type {any} */ (null);
    this.toml = /** @type {string | null} */ (null);
    this.question = "";
    this.asking = "";
    this.follower = new Follower(() => this.write());
    /** The address is being changed to what is on screen already. */
    this.echo = false;
    const hand = (this.hand = new Hand(this));
    this.stage = new Stage({
      onMove: (_, settled) => this.moved(settled),
      onSelect: (selection) => hand.select(selection),
      onMenu: (selection, at) => hand.openMenu(selection, at),
      onFlight: (id, at) => hand.openMessage(id, at),
      onChange: (...flags) => hand.change(flags),
      onWalk: (way) => hand.walk(way),
      onStep: (i) => hand.visit(i),
      onBase: (keep) => hand.compareWith(keep),
    });
    this.heading = new Heading({
      onEdit: (edit) => hand.edit(edit),
      onRemove: (change) => hand.go(without(hand.here(), change)),
      actions: () => this.actions(),
    });
    this.predict = new Predict({ onDone: () => this.show(), onLeave: () => hand.ask(false), play: () => this.stage.play() });
    this.tour = new TourStrip((query) => app.navigate(query));
    /** @type {import("../part/scale.js").Scale | null} */
    this.scale = null;
    this.stage.element.classList.add("waiting");
    root.append(this.heading.element, this.tour.element, this.stage.element);
    this.root = root;
    this.files = { over: (/** @type {Event} */ event) => event.preventDefault(), drop: (/** @type {DragEvent} */ event) => this.dropped(event) };
    root.addEventListener("dragover", this.files.over);
    root.addEventListener("drop", this.files.drop);
  }

  get isCurrent() {
    return this.key === this.loadedKey;
  }

  leave() {
    this.key = "left";
    this.follower.stop();
    closePopover();
    this.heading.computed();
    this.stage.leave();
    this.root.removeEventListener("dragover", this.files.over);
    this.root.removeEventListener("drop", this.files.drop);
  }

  /** @param {Query} query */
  update(query) {
    const { z = "", vs = "" } = query.own;
    const named = query.path || z || query.flags.length;
    this.query = named ? query : { ...query, path: FIRST };
    if (this.echo) return;
    const key = JSON.stringify([this.query.path, query.flags, z, vs, query.own.tour]);
    if (key === this.key && this.isCurrent) return this.show();
    if (key !== this.key) this.load((this.key = key));
  }

  /** Computes the run of the address; the old one stays on screen until it is there. @param {string} key */
  async load(key) {
    const { query, app } = this;
    const bar = setTimeout(() => this.key === key && this.stage.transport.compute(true), 120);
    const patience = setTimeout(() => this.key === key && this.heading.compute(() => app.back()), 1000);
    try {
      const toml = query.own.z ? await unpack(query.own.z) : null;
      if (query.own.z && toml === null) throw new Error("The scenario in this address is damaged: a part of the link is missing.");
      const of = source(query, toml);
      const base = baseFlags(query);
      const before = base && { ...of, flags: base };
      const { simulation } = app;
      const [run, beside, explained, catalogue] = await Promise.all([
        simulation.run(of), before && simulation.run(before), simulation.explain(before ?? of), simulation.catalogue().catch(() => null),
      ]);
      if (this.key !== key) return;
      const stop = stopOf(catalogue, query, app.host === "lab");
      // With another algorithm or other members it is another run than the one that was told.
      const told = stop !== null || query.flags.length === branched(query).length;
      const title = stop?.title ?? (told ? explained.title : `${explained.title}, changed`);
      this.tour.load(stop);
      this.heading.title.classList.toggle("unseen", stop !== null); // the strip has it
      Object.assign(this, { run, beside, explained, toml, source: of, loadedKey: key, question: stop || !told ? "" : questionOf(catalogue, query.path), divergence: beside ? divergence(beside, run) : null });
      if (!told) run.data.about = "";
      this.heading.load({ explained: { ...explained, title }, changes: branched(query), notices: this.notices(run), about: notesOf(catalogue, explained.sentence) });
      document.title = `${title} · doyen lab`;
      this.show();
    } catch (problem) {
      if (this.key === key) await this.refuse(/** @type {any} */ (problem), key);
    } finally {
      clearTimeout(bar);
      clearTimeout(patience);
      if (this.key === key) {
        this.stage.transport.compute(false);
        this.heading.computed();
      }
    }
  }

  /** Notices about a run that precede its pictures. @param {Run} run */
  notices(run) {
    const { truncated, loop } = run.data;
    const stale = staleness(this.query, run);
    return [
      ...(stale ? [{
        text: `This link was made with another doyen: there the run is ${stale.made}, here it is ${stale.now}. Step ${stale.step} may be another one.`,
        action: { title: `Show step ${stale.step} of this run`, run: () => this.app.navigate(withOwn(this.query, { h: stale.now })) },
      }] : []),
      ...(truncated ? [{ text: truncated, action: run.length ? { title: "Curves of all", run: () => this.hand.look("scale") } : undefined }] : []),
      ...(loop ? [{ text: `Steps ${loop.from + 1} to ${loop.to + 1} repeat: this run never ends. Play repeats them.` }] : []),
    ];
  }

  /**
   * The engine rejects the scenario. What was on screen stays, dimmed; if nothing was, the scenario without the flag at fault
   * stands in. @param {Error & { key?: string | null }} problem @param {string} key
   */
  async refuse(problem, key) {
    const { simulation } = this.app;
    const { flags } = this.query;
    if (!this.explained) {
      const rest = source({ ...this.query, flags: flags.filter(([flag]) => flag !== problem.key) }, this.toml);
      const [run, explained] = await Promise.all([simulation.run(rest), simulation.explain(rest)]).catch(() => [null, null]);
      if (this.key !== key) return;
      if (run) {
        Object.assign(this, { run, explained, source: rest });
        this.heading.load({ explained, changes: [], notices: [] });
        this.show();
      }
    }
    this.loadedKey = ""; // what is on screen is not the run of the address
    this.heading.refuse(problem.message, problem.key ?? null, flags);
    this.stage.element.classList.add("refused");
    this.app.shown = { ...this.app.shown, problem: problem.message };
  }

  /** Draws what the address says of the run that is there. */
  show() {
    const { run, beside, query, stage } = this;
    if (!run) return;
    stage.element.classList.remove("refused", "waiting");
    const { view = "split", ask } = query.own;
    const hidden = Boolean(ask) && this.predict.open(run);
    set(stage.element, { "data-view": view });
    // A run that is too large to be recorded has its curves.
    if (view === "scale" || run.length === 0) this.showScale(run);
    else stage.replacePictures(null);
    const asking = ask ? `${run.data.hash} ${hidden}` : "";
    stage.side.top.replaceChildren(...(ask ? [this.predict.element] : []));
    const { player } = stage;
    const position = player.playing && player.run === run ? player.position : positionIn(query, run);
    stage.load({
      run, beside, divergence: this.divergence, hidden, question: this.question, changes: changes(query).map(({ text }) => text), kept: kept(query) ?? 0,
    }, position, selectionIn(query, run));
    // A phone shows one panel: that of the question, then that of the answer.
    if (asking && asking !== this.asking) stage.turnTo("why", "instant");
    this.asking = asking;
    if (stage.player.isAtEnd && !hidden) this.tour.tell();
    this.publish();
  }

  /** @param {Run} run */
  async showScale(run) {
    const { Scale } = await import("../part/scale.js");
    this.scale ??= new Scale(this.app.simulation, {
      onMembers: (n) => this.app.navigate(withOwn(this.query, { n }), { replace: true }), onLeave: () => this.hand.look("split"),
    });
    if (this.run !== run || (this.query.own.view !== "scale" && run.length)) return;
    this.stage.replacePictures(this.scale.element);
    this.scale.show(this.source, run, this.explained.sentence, Number(this.query.own.n) || run.order.length || memberCount(this.explained.sentence));
  }

  /**
   * What tests read as `lab.shown`:
   * `scenario` on screen (its name in the gallery), `hash` and `base` of the runs (base null without a branch), `s`, `t`, `of` (steps in all), `playing`, `selection`,
   * `messages` counted at this step and `total`, `by_kind` at this step, `verdict` as shown, `leader` at this step,
   * `divergence` (index of the first step that differs), `changes` (texts), `hidden` (the future is), `rounds` of a loop,
   * `problem` (what the engine said against the scenario, or null).
   */
  publish() {
    const { run, beside, stage } = this;
    if (!run || !stage.loaded) return;
    const { s, t } = stage.player.position;
    const { playing, rounds } = stage.player;
    const before = this.app.shown;
    const moved = before.hash !== run.data.hash || before.s !== s;
    this.app.shown = {
      ...(moved ? counted(run, s) : before),
      view: "sim", scenario: this.source.gallery, hash: run.data.hash, base: beside?.data.hash ?? null, s, t, of: run.length, playing, rounds,
      selection: stage.selection, verdict: stage.side.counter.verdict.textContent, divergence: this.divergence,
      changes: branched(this.query).map(({ text }) => text), hidden: stage.loaded.hidden, problem: null,
    };
    if (moved && before.hash === run.data.hash && before.leader !== this.app.shown.leader && this.app.shown.leader !== null) {
      this.app.announce(`${run.name(this.app.shown.leader)} ${run.excludes ? "enters" : "leads"}`);
    }
  }

  /** The player has moved. @param {boolean} settled */
  moved(settled) {
    this.publish();
    this.follower.follow(settled);
    this.predict.moved(this.stage.player);
    if (this.stage.player.isAtEnd) this.tour.tell();
  }

  /** Brings the address up to what is on screen. */
  write() {
    if (!this.run || !this.isCurrent) return;
    this.echo = true;
    this.app.navigate(this.hand.here(), { replace: true });
    this.echo = false;
  }

  /** The buttons beside the title. @returns {Command[]} */
  actions() {
    const { hand, query } = this;
    const check = () => this.app.navigate({ view: "check", path: query.path, flags: query.flags, own: query.own.z ? { z: query.own.z } : {} });
    const race = () => this.app.navigate(raceOf(query, this.explained.sentence));
    const exporting = {
      title: "Export", key: "E", run: () => showExport(this.app, this.source, this.explained),
    };
    if (this.beside) return [{ title: "Undo", key: "U", run: () => this.app.back() }, { title: "Make B the base", run: () => hand.makeBase() }, exporting];
    return [
      { title: "Predict", key: "G", run: () => hand.ask(!this.query.own.ask) },
      { title: "Scale", run: () => hand.look(this.query.own.view === "scale" ? "split" : "scale") },
      { title: "Race", run: race },
      { title: "Check", run: check },
      exporting,
    ];
  }

  /** @returns {Command[]} */
  commands() {
    const { run, stage, hand } = this;
    if (!run) return [];
    const box = stage.columns.getBoundingClientRect();
    const next = /** @type {Record<string, string>} */ ({ split: "diagram", diagram: "members" })[this.query.own.view ?? "split"] ?? "split";
    return [
      ...runCommands(stage),
      { key: "F", title: next === "split" ? "Both pictures" : `Only the ${next}`, group: "Look", run: () => hand.look(next) },
      { key: "B", title: "Branch here …", group: "What if", run: () => hand.openMenu(null, { x: box.left + box.width / 3, y: box.top + 80 }) },
      ...changeCommands(run, stage.selection, stage.player.position, (...flags) => hand.change(flags)),
      ...this.actions().filter((one) => one.key !== "U").map((one) => ({ ...one, group: "Scenario" })),
    ];
  }

  /** A scenario file is dropped onto the page. @param {DragEvent} event */
  dropped(event) {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    if (!file.name.endsWith(".toml")) return this.app.toast(`${file.name} is not a scenario. Drop a .toml file.`);
    const address = async () => ({ view: /** @type {const} */ ("sim"), path: "", flags: [], own: { z: await pack(await file.text()) } });
    this.app.follow(address());
  }
}
