/**
 * Check: a question to the model checker. It tries every order of events and every fault that the question allows; if the
 * property is violated, the shortest run that shows it is opened on the stage.
 */

import { button, h, set } from "../dom.js";
import { edited, notesOf, positionIn, selectionIn } from "../model/address.js";
import { FIRST_QUESTION, BUDGETS, asked, effort, faultsOf, headOf, normalized, printBudget, questionWords } from "../model/question.js";
import { many, readable } from "../model/words.js";
import { showExport } from "../part/export.js";
import { Heading } from "../part/heading.js";
import { Follower, Look } from "../part/look.js";
import { runCommands } from "../part/runcommands.js";
import { pack, unpack } from "../part/share.js";
import { Stage } from "../part/stage.js";
import { source, withOwn } from "../url.js";

/**
 * @typedef {import("../url.js").Query} Query
 * @typedef {import("../model/run.js").Run} Run
 */

const MOST_STATES = 500_000;

/** @param {HTMLElement} root @param {import("../main.js").App} app */
export const mount = (root, app) => new Check(root, app);

class Check {
  /** @param {HTMLElement} root @param {import("../main.js").App} app */
  constructor(root, app) {
    this.app = app;
    this.query = app.query;
    this.key = "";
    /** @type {Run | null} */
    this.run = null;
    this.explained = /** @type {any} */ (null);
    this.source = /** @type {any} */ (null);
    this.answer = /** @type {any} */ (null);
    /** How long the answer took, in milliseconds. */
    this.took = 0;
    /** @type {{ id: string, text: string }[]} */
    this.properties = [];
    /** @type {AbortController | null} */
    this.asking = null;
    /** Whether the question on screen is that of the address, and whether to ask it as soon as it is. */
    this.ready = false;
    this.wanted = false;
    this.echo = false;
    const look = (this.look = new Look(this));
    this.follower = new Follower(() => this.write());
    this.stage = new Stage({
      onMove: (_, settled) => { this.publish(); this.follower.follow(settled); },
      onSelect: (selection) => look.select(selection), onWalk: (way) => look.walk(way), onStep: (i) => look.visit(i),
    });
    this.heading = new Heading({ onEdit: (edit) => this.edit(edit), onRemove: () => {}, actions: () => this.actions() });
    this.verdict = h("div", { class: "check-verdict", "aria-live": "polite" });
    this.stage.element.hidden = true;
    root.append(this.heading.element, h("div", { class: "check-body" }, this.verdict, this.stage.element));
  }

  get isCurrent() {
    return this.run !== null;
  }

  /** The question: the property and the fault budget. */
  get asked() {
    return asked(this.query, this.explained?.check);
  }

  leave() {
    this.key = "left";
    this.asking?.abort();
    this.follower.stop();
    this.stage.leave();
  }

  /** @param {Query} given */
  update(given) {
    const named = given.path || given.own.z || given.flags.length;
    this.query = normalized(named ? given : { ...FIRST_QUESTION, own: { ...FIRST_QUESTION.own, ...given.own } });
    if (this.echo) return;
    const { z = "", property = "", budget = "" } = this.query.own;
    const key = JSON.stringify([this.query.path, this.query.flags, z, property, budget]);
    if (key === this.key) return this.show();
    this.key = key;
    this.load(key);
  }

  /** The question in words; the answer is computed when it is asked for. @param {string} key */
  async load(key) {
    this.forget();
    this.ready = this.wanted = false;
    const { query, app } = this;
    try {
      const toml = query.own.z ? await unpack(query.own.z) : null;
      this.source = source(query, toml);
      const [explained, catalogue] = await Promise.all([app.simulation.explain(this.source), app.simulation.catalogue()]);
      if (this.key !== key) return;
      const properties = (catalogue.properties ?? []).filter((/** @type {{ id: string }} */ { id }) => explained.check?.properties?.includes(id) ?? true);
      Object.assign(this, { explained, properties });
      const words = questionWords(explained.sentence, this.asked.budget, this.asked.property, this.properties, faultsOf(explained.check));
      this.heading.load({ explained: { ...explained, title: `Check: ${explained.title}`, sentence: words }, changes: [], notices: [], about: notesOf(catalogue, explained.sentence) });
      this.ready = true;
      this.explain();
      // A link to a step of a counterexample needs the counterexample.
      if (query.own.h || this.wanted) this.ask();
    } catch (problem) {
      if (this.key === key) this.refuse(/** @type {any} */ (problem));
    }
  }

  /** @param {Error & { key?: string | null }} problem */
  refuse(problem) {
    this.heading.refuse(problem.message, problem.key ?? null, this.query.flags);
    this.verdict.replaceChildren();
    this.app.shown = { view: "check", problem: problem.message };
  }

  /** The answer was to another question. */
  forget() {
    this.asking?.abort();
    Object.assign(this, { asking: null, answer: null, run: null });
    this.stage.element.hidden = true;
  }

  /** Before anything is asked: what the question means. */
  explain() {
    const { property, budget } = this.asked;
    const chosen = this.properties.find(({ id }) => id === property);
    const faults = Object.entries(budget).filter(([, value]) => value).map(([name, value]) => `${value} ${BUDGETS[name][value === 1 ? 0 : 1]}`);
    this.verdict.replaceChildren(h("div", { class: "check-empty" },
      h("p", { class: "big" }, chosen ? `${headOf(chosen.text)[0].toUpperCase()}${chosen.text.slice(1)}.` : ""),
      h("p", { class: "soft" }, `The checker tries every order in which messages can arrive and timers fire${faults.length ? `, and every place for ${faults.join(", ")}` : ", without any fault"}. If the property can be violated, it shows the shortest run that violates it.`),
      h("p", {}, button("Check", () => this.ask(), { class: "primary", key: "Enter" })),
      h("h2", {}, "Other properties"),
      h("ul", { class: "properties" }, this.properties.filter(({ id }) => id !== property).slice(0, 8).map(({ id, text }) => h("li", {}, h("button", {
        type: "button", class: "plain", on: { click: () => this.app.navigate(withOwn(this.query, { property: id })) },
      }, h("strong", {}, headOf(text)), h("span", { class: "soft" }, text.slice(headOf(text).length + 1))))))));
    this.publish();
  }

  async ask() {
    this.wanted = !this.ready;
    if (this.asking || !this.ready) return;
    const asking = (this.asking = new AbortController());
    const began = performance.now();
    const request = { source: this.source, ...this.asked, max_states: MOST_STATES };
    this.running({ states: 0, depth: 0 }, began);
    try {
      const answer = await this.app.simulation.check(request, (news) => this.asking === asking && this.running(news, began), asking.signal);
      if (this.asking !== asking) return;
      Object.assign(this, { asking: null, answer, run: answer.run, took: performance.now() - began });
      this.tell();
      this.show();
    } catch (problem) {
      if (this.asking !== asking && !asking.signal.aborted) return;
      this.asking = null;
      if (asking.signal.aborted) this.explain();
      else this.verdict.replaceChildren(h("p", { class: "problem", role: "alert" }, /** @type {Error} */ (problem).message));
      this.publish();
    }
  }

  /** @param {{ states: number, depth?: number, minimizing?: boolean }} news @param {number} began */
  running({ states, depth = 0, minimizing = false }, began) {
    const seconds = Math.max(0.001, (performance.now() - began) / 1000);
    const rate = minimizing ? "with fewer members, faults, initiators and requests" : `depth ${depth}, ${many(Math.round(states / seconds), "state")} a second`;
    this.verdict.replaceChildren(h("div", { class: "check-line" },
      h("p", { class: "big" }, minimizing ? "Violated; looking for a smaller run" : states ? `${many(states, "state")} so far` : "Exploring…"),
      h("p", { class: "soft" }, states ? rate : ""),
      button("Stop", () => this.asking?.abort(), { key: "Esc" })));
    this.publish({ states });
  }

  /** The verdict in a sentence, and what it does not cover. */
  tell() {
    const { verdict, text, explored, not_covered: left, faults_replaced: partly } = this.answer;
    // A property that holds only without the faults of the scenario is no good news.
    const tone = verdict === "violated" ? "bad" : verdict === "holds" && !partly ? "good" : "soft";
    const sign = { bad: "✗", good: "✓", soft: "–" }[tone];
    this.verdict.replaceChildren(h("div", { class: "check-line" },
      h("p", { class: "big" }, h("span", { class: tone }, `${sign} `), text),
      h("p", { class: "soft" }, effort(explored, this.took), left ? `. Not covered: ${readable(left).replace(/^Not covered: /, "").replace(/\.$/, "")}.` : "."),
      h("div", { class: "buttons" },
        this.answer.source ? button("Open in Simulate", () => this.openInSimulate(), { class: "primary" }) : "",
        this.answer.source ? button("Export", () => this.export(), { key: "E" }) : "",
        button("Check again", () => { this.forget(); this.ask(); }))),
    verdict === "holds" ? this.harder() : "");
  }

  /** If a property holds, the question can be repeated with one more fault. */
  harder() {
    const { budget } = this.asked;
    return h("div", { class: "check-empty" }, h("h2", {}, "And if one more thing goes wrong?"),
      h("div", { class: "buttons" }, faultsOf(this.explained?.check).map(([name, [one]]) =>
        button(`${budget[name] ? "One more" : "One"} ${one}`, () => this.edit({ flag: name, value: String(budget[name] + 1), before: String(budget[name]) })))));
  }

  /** The counterexample on the stage. */
  show() {
    const { run, stage, query } = this;
    stage.element.hidden = !run;
    if (!run) return;
    set(stage.element, { "data-view": "split" });
    const position = query.own.s === undefined && !stage.player.playing && stage.player.run !== run ? run.atStep(run.length) : stage.player.playing ? stage.player.position : positionIn(query, run);
    stage.load({ run, beside: null, divergence: null }, position, selectionIn(query, run));
    this.publish();
  }

  /**
   * What tests read as `lab.shown`: `running`, `states`, `verdict` ("violated", "holds", "stopped" or null), `text`,
   * `property`, `budget`, and of the counterexample `hash`, `s`, `of`, `selection`, `loop`.
   * @param {{ states?: number }} [news]
   */
  publish(news = {}) {
    const { answer, run, query } = this;
    this.app.shown = {
      view: "check", running: this.asking !== null, states: answer?.explored.states ?? news.states ?? 0, verdict: answer?.verdict ?? null, text: answer?.text ?? "",
      ...this.asked, problem: null,
      hash: run?.data.hash ?? null, s: this.stage.player.position.s, of: run?.length ?? 0, selection: this.stage.selection, loop: run?.data.loop ?? null,
    };
  }

  write() {
    if (!this.run) return;
    this.echo = true;
    this.app.navigate(this.look.here(), { replace: true });
    this.echo = false;
  }

  /** @param {import("../part/sentence.js").Edit} edit */
  edit(edit) {
    const fresh = withOwn(this.query, { s: null, t: null, h: null, sel: null });
    if (edit.flag === "property") return this.app.navigate(withOwn(fresh, { property: edit.value }));
    if (!(edit.flag in BUDGETS)) return this.app.navigate(edited(fresh, edit, this.explained.sentence));
    const budget = { ...this.asked.budget, [edit.flag]: Number(edit.value) };
    this.app.navigate(withOwn(fresh, { budget: printBudget(budget) || "none" }));
  }

  openInSimulate() {
    const { gallery, toml, flags = [] } = this.answer.source;
    const address = async () => ({ view: /** @type {const} */ ("sim"), path: gallery ?? "", flags, own: toml ? { z: await pack(toml) } : {} });
    this.app.follow(address());
  }

  export() {
    showExport(this.app, this.answer.source, { title: this.explained.title, command: this.answer.command });
  }

  /** @returns {import("../part/commands.js").Command[]} */
  actions() {
    const { query } = this;
    return [{ title: "Simulate", run: () => this.app.navigate({ view: "sim", path: query.path, flags: query.flags, own: query.own.z ? { z: query.own.z } : {} }) }];
  }

  /** @returns {import("../part/commands.js").Command[]} */
  commands() {
    const asking = this.asking
      ? [{ key: "Esc", title: "Stop", group: "Check", run: () => this.asking?.abort() }]
      : this.answer ? [] : [{ key: "Enter", title: "Check", group: "Check", run: () => void this.ask() }];
    const exporting = this.answer?.source ? [{ key: "E", title: "Export", group: "Check", run: () => this.export() }] : [];
    return [...asking, ...exporting, ...(this.run ? runCommands(this.stage) : [])];
  }
}
