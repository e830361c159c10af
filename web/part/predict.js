/**
 * Predict: a question before play. What is ahead is hidden until the run has reached its end; then the answer stands beside
 * the guess. Guesses and the score are of this session only.
 */

import { button, h, region } from "../dom.js";
import { QUESTIONS, isRight, questionsFor } from "../model/prediction.js";
import { reason, winner } from "../model/reason.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/prediction.js").Name} Name
 * @typedef {import("../model/prediction.js").Guess} Guess
 */

/** Right answers and questions of this session. */
const score = { right: 0, asked: 0 };

export class Predict {
  /** @param {{ onDone(): void, onLeave(): void, play(): void }} told */
  constructor({ onDone, onLeave, play }) {
    this.told = { onDone, onLeave, play };
    /** @type {Run | null} */
    this.run = null;
    /** @type {Name[]} */
    this.asked = [];
    /** @type {Map<Name, Guess>} */
    this.guesses = new Map();
    this.answered = false;
    this.element = region("Predict", { class: "predict" }, h("div", { class: "body" }));
  }

  reset() {
    this.run = null;
  }

  /** Asks about this run; returns whether what is ahead is hidden. @param {Run} run */
  open(run) {
    if (this.run !== run) {
      Object.assign(this, { run, asked: questionsFor(run), guesses: new Map(), answered: false });
      this.draw();
    }
    return !this.answered;
  }

  get isOpen() {
    return this.run !== null && !this.answered;
  }

  /** A member that is selected while the question is open is the guess. @param {string | null} selection */
  choose(selection) {
    if (!this.isOpen) return false;
    if (selection !== null && /^\d+$/.test(selection)) this.take(this.run?.excludes ? "first" : "leader", Number(selection));
    return true;
  }

  /** @param {Name} name @param {Guess} guess */
  take(name, guess) {
    this.guesses.set(name, guess);
    this.draw();
  }

  /** @param {import("./player.js").Player} player */
  moved(player) {
    const { run } = this;
    if (!this.isOpen || !run || player.run !== run || !player.isAtEnd) return;
    this.answered = true;
    score.asked += this.guesses.size;
    score.right += [...this.guesses].filter(([name, guess]) => isRight(name, run, guess)).length;
    this.draw();
    this.told.onDone();
  }

  draw() {
    const body = /** @type {HTMLElement} */ (this.element.querySelector(".body"));
    body.replaceChildren(...(this.answered ? this.answers() : this.questions()));
  }

  questions() {
    return [
      ...this.asked.map((name) => this.question(name)),
      h("p", { class: "note" }, "What is ahead is hidden until the run has ended. A guess may be left empty."),
      h("div", { class: "buttons" }, button("Play", () => this.told.play(), { class: "primary" }), button("Never mind", () => this.told.onLeave())),
    ];
  }

  /** @param {Name} name */
  question(name) {
    const run = /** @type {Run} */ (this.run);
    const { title, kind, unit } = QUESTIONS[name];
    const guess = this.guesses.get(name);
    if (kind === "number") {
      return number(title, typeof guess === "number" ? guess : null, (value) => (value === null ? this.guesses.delete(name) : this.guesses.set(name, value)), unit);
    }
    const choice = (/** @type {Guess} */ value, /** @type {string} */ text) =>
      button(text, () => this.take(name, value), { class: "tiny", "aria-pressed": String(guess === value) });
    const choices = () => {
      if (kind === "choice") return [choice(true, "yes"), choice(false, "no")];
      const none = choice(null, QUESTIONS[name].words(run, null));
      if (run.order.length <= 12) return [...run.order.map((id) => choice(id, run.name(id))), none];
      return [typeof guess === "number" ? `${run.name(guess)} ` : "Click a member. ", none];
    };
    return h("div", { class: "question" }, h("h3", {}, title), h("div", { class: "buttons" }, choices()));
  }

  answers() {
    const run = /** @type {Run} */ (this.run);
    const { leader } = run.data.metrics;
    const decisive = run.excludes
      ? run.steps.findIndex((step) => winner(step) !== null)
      : run.steps.findLastIndex((step) => winner(step) === leader && leader !== null);
    const why = decisive < 0 ? null : reason(run, `s${decisive}`, { s: run.length, t: run.end });
    return [
      ...this.asked.map((name) => {
        const { short, truth, words } = QUESTIONS[name];
        const guess = this.guesses.get(name);
        return line(short, words(run, truth(run)), guess === undefined ? null : { words: words(run, guess), right: isRight(name, run, guess) });
      }),
      why ? h("p", { class: "rule" }, h("span", { class: "ids" }, why.rules.map(({ id, title }) => h("abbr", { title }, id))), h("span", {}, why.words)) : "",
      h("p", { class: "note" }, score.asked ? `${score.right} of ${score.asked} right in this session.` : "No guess, no score."),
      h("div", { class: "buttons" }, button("Done", () => this.told.onLeave())),
    ];
  }
}

/** @param {string} title @param {number | null} value @param {(value: number | null) => void} take @param {string} [unit] */
function number(title, value, take, unit = "") {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "number", min: 0, step: unit ? "any" : 1, value: value ?? "", inputmode: unit ? "decimal" : "numeric", placeholder: unit }));
  input.addEventListener("input", () => take(input.value === "" ? null : Number(input.value)));
  return h("label", { class: "ask" }, h("span", {}, title), input);
}

/** The answer beside the guess. @param {string} title @param {string} answer @param {{ words: string, right: boolean } | null} guess */
function line(title, answer, guess) {
  return h("p", { class: "answer" }, h("span", { class: "soft" }, title), h("strong", {}, answer),
    guess === null ? h("span", { class: "soft" }, "no guess") : h("span", { class: guess.right ? "good" : "bad" }, guess.right ? "✓ as you said" : `✗ you said ${guess.words}`));
}
