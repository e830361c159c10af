/** The thread of the tour: which stop this is, what it asks, and the way on. What it shows is told once the run has ended. */

import { button, h, set } from "../dom.js";

export class TourStrip {
  /** @param {(query: import("../url.js").Query) => void} go */
  constructor(go) {
    this.go = go;
    this.title = h("strong", {});
    this.question = h("span", {});
    this.about = h("p", { class: "small", role: "status" });
    this.buttons = h("div", { class: "buttons" });
    this.element = h("section", { class: "tour-strip", "aria-label": "Tour", hidden: true },
      h("div", { class: "words" }, h("p", {}, this.title, " · ", this.question), this.about), this.buttons);
    /** @type {import("../model/tour.js").Stop | null} */
    this.stop = null;
  }

  /** @param {import("../model/tour.js").Stop | null} stop */
  load(stop) {
    const same = stop?.number === this.stop?.number;
    this.stop = stop;
    set(this.element, { hidden: !stop });
    if (!stop || same) return;
    set(this.title, { text: `${stop.tour}, ${stop.number} of ${stop.of}: ${stop.title}` });
    set(this.question, { text: stop.question });
    set(this.about, { text: "", hidden: true });
    const way = (/** @type {string} */ title, /** @type {import("../url.js").Query} */ query, /** @type {string} */ kind) =>
      button(query.view === "gallery" ? "Gallery" : title, () => this.go(query), { class: kind });
    this.buttons.replaceChildren(way("Back", stop.back, ""), way("Next", stop.next, "primary"));
  }

  /** The run has ended, or the answer stands beside the guess: what was told stays. */
  tell() {
    if (this.stop) set(this.about, { text: this.stop.about, hidden: null });
  }
}
