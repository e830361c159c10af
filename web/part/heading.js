/** The heading of a run: its title, the scenario as a sentence, its changes, its buttons, and notices. */

import { button, h } from "../dom.js";
import { chips } from "./compare.js";
import { Sentence } from "./sentence.js";

/**
 * @typedef {object} Loaded
 * @property {any} explained as the engine explains the scenario
 * @property {import("../model/branch.js").Change[]} changes of the branch
 * @property {(flag: string, value: string) => string} [about] what is to be said about a choice of the sentence
 * @property {{ text: string, action?: { title: string, run(): void } }[]} notices
 */

export class Heading {
  /** @param {{ onEdit(edit: import("./sentence.js").Edit): void, onRemove(change: import("../model/branch.js").Change): void, actions(): import("./commands.js").Command[] }} told */
  constructor({ onEdit, onRemove, actions }) {
    this.onRemove = onRemove;
    this.actions = actions;
    this.title = h("h1", { class: "title" }, "Simulate");
    this.sentence = new Sentence({ onEdit });
    this.chips = h("div", {});
    this.buttons = h("div", { class: "buttons" });
    this.notices = h("div", { class: "notices" });
    this.busy = h("p", { class: "note computing", role: "status", hidden: true });
    this.element = h("div", { class: "heading" },
      h("div", { class: "words" }, this.title, h("div", { class: "line" }, this.sentence.words, this.chips), this.sentence.problem, this.notices, this.busy),
      this.buttons);
  }

  /** @param {Loaded} loaded */
  load({ explained, changes, notices, about }) {
    this.title.textContent = explained.title;
    this.sentence.show(explained.sentence, about);
    this.chips.replaceChildren(...(changes.length ? [chips(changes, this.onRemove)] : []));
    this.notices.replaceChildren(...notices.map(({ text, action }) => {
      const notice = h("p", { class: "notice", role: "status" }, h("span", {}, text),
        action && button(action.title, () => { notice.remove(); action.run(); }, { class: "tiny" }),
        button("×", () => notice.remove(), { class: "plain", "aria-label": "Close this notice" }));
      return notice;
    }));
    this.draw();
  }

  /** The buttons, which depend on what is shown. */
  draw() {
    this.buttons.replaceChildren(...this.actions().map(({ title, key, run }) =>
      button(title, run, { key: key === "U" ? key : undefined, "aria-keyshortcuts": key, title: key ? `${title} (${key})` : null })));
  }

  /** @param {string} message @param {string | null} key @param {[string, string][]} flags */
  refuse(message, key, flags) {
    this.sentence.refuse(message, key, flags);
  }

  /** Shows that the run takes long. @param {() => void} stop */
  compute(stop) {
    const began = performance.now() - 1000;
    const seconds = h("span", {});
    const tell = () => (seconds.textContent = `Computing for ${Math.round((performance.now() - began) / 1000)} s. `);
    tell();
    clearInterval(this.timer);
    this.timer = setInterval(tell, 1000);
    this.busy.replaceChildren(seconds, button("Stop", stop, { class: "tiny" }));
    this.busy.hidden = false;
  }

  computed() {
    clearInterval(this.timer);
    this.busy.hidden = true;
  }
}
