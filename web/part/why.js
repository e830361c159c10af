/** Why: the rule that fired in the words of the algorithm, and the chain of causes before it. */

import { button, h, region } from "../dom.js";
import { contentOf, fate, folded, kindOf, reason, sentence } from "../model/reason.js";
import { list, time } from "../model/words.js";

/**
 * @typedef {import("../model/run.js").Run} Run
 * @typedef {import("../model/run.js").Position} Position
 */

export class Why {
  /** @param {{ onStep(i: number): void, onWalk(way: 1 | -1): void }} told */
  constructor({ onStep, onWalk }) {
    this.onStep = onStep;
    this.body = h("div", {});
    this.note = h("p", { class: "note" });
    const walk = h("div", { class: "walk" },
      button("[", () => onWalk(-1), { class: "plain", "aria-label": "To the cause", title: "To the cause  [" }),
      button("]", () => onWalk(1), { class: "plain", "aria-label": "To the consequence", title: "To the consequence  ]" }));
    this.element = region("Why", { class: "why" }, this.body);
    this.element.querySelector(".head")?.append(this.note, walk);
    this.drawn = "";
    /** The chain that was unfolded stays so. */
    this.unfolded = -1;
  }

  /** @param {Run} run @param {string | null} selection @param {Position} position @param {{ letter?: string, about?: boolean, question?: string }} [options] */
  show(run, selection, position, { letter = "", about = true, question = "" } = {}) {
    const message = selection?.startsWith("m") ? run.byId.get(Number(selection.slice(1))) : null;
    // What a message does changes with time; everything else only with the step.
    const key = [run.data.hash, selection, position.s, message ? position.t : "", this.unfolded, letter, about].join(" ");
    if (key === this.drawn) return;
    this.drawn = key;
    const why = reason(run, selection, position);
    if (!why) return this.empty(run, selection, about, question);
    this.note.textContent = `${letter ? `${letter}, ` : ""}step ${why.step + 1}, ${why.when}`;
    this.body.replaceChildren(
      ...(message ? [h("h3", {}, `${kindOf(run, message)} from ${run.name(message.from)} to ${run.name(message.to)}`),
        contentOf(run, message) ? h("p", { class: "note mono" }, contentOf(run, message)) : "",
        h("p", { class: "small soft" }, fate(run, message.id, position)),
        h("p", { class: "small because" }, h("strong", {}, why.title))] : [h("h3", {}, why.title)]),
      ...(why.rules.length || why.words ? [h("p", { class: "rule" },
        h("span", { class: "ids" }, why.rules.map(({ id, title }) => h("abbr", { title }, id))), h("span", {}, why.words))] : []),
      this.chain(why));
  }

  /** @param {Run} run @param {string | null} selection @param {boolean} about @param {string} question */
  empty(run, selection, about, question) {
    this.note.textContent = "";
    if (selection && /^\d+$/.test(selection)) {
      this.body.replaceChildren(h("p", { class: "empty" }, `${run.name(Number(selection))} has done nothing so far.`));
    } else {
      const text = about ? run.data.about?.replaceAll("\n", " ") : "";
      this.body.replaceChildren(question ? h("h3", {}, question) : "", text ? h("p", { class: "small about" }, text) : "",
        h("p", { class: "empty" }, "Nothing has happened yet. Play with ", h("kbd", {}, "Space"), ", step with ", h("kbd", {}, "→"), ...(question ? [", or guess first with ", h("kbd", {}, "G")] : []), "."));
    }
  }

  /** @param {import("../model/reason.js").Reason} why */
  chain(why) {
    const all = this.unfolded === why.step ? { first: why.chain, hidden: 0, last: [] } : folded(why.chain);
    const row = (/** @type {import("../model/reason.js").Line} */ line) => {
      const i = /** @type {number} */ (line.steps.at(-1));
      return h("li", {}, h("button", { type: "button", class: "plain", on: { click: () => this.onStep(i) } },
        h("span", { class: "at" }, time(line.at)),
        h("span", {}, line.members.length ? h("strong", {}, brief(line.members)) : "", line.members.length && !line.what.startsWith(":") ? " " : "", sentence(line))));
    };
    const unfold = () => {
      this.unfolded = why.step;
      this.drawn = "";
      this.onStep(why.step);
    };
    return h("ol", { class: "chain", "aria-label": "Causes, the first at the top" },
      all.first.map(row),
      all.hidden ? h("li", { class: "fold" }, button(`${all.hidden} more`, unfold, { class: "plain" })) : null,
      all.last.map(row));
  }
}

/** "0 to 5", "5 and 6". @param {string[]} names */
function brief(names) {
  const numbers = names.map(Number).sort((a, b) => a - b);
  const straight = numbers.length > 2 && numbers.every((n, place) => Number.isInteger(n) && (place === 0 || n === numbers[place - 1] + 1));
  return straight ? `${numbers[0]} to ${numbers.at(-1)}` : names.length > 6 ? `${names.length} members` : list(names);
}
