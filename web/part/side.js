/** The column beside the pictures: why, the selected member, the count or the comparison, what if, the log. */

import { h } from "../dom.js";
import { Compare } from "./compare.js";
import { Counter } from "./counter.js";
import { Inspector } from "./inspector.js";
import { Log } from "./log.js";
import { WhatIf } from "./whatif.js";
import { Why } from "./why.js";

export class Side {
  /** @param {import("./stage.js").Told} told @param {(position: import("../model/run.js").Position) => void} onGo */
  constructor(told, onGo) {
    this.why = new Why(told);
    this.inspector = new Inspector();
    this.counter = new Counter();
    this.compare = new Compare();
    this.whatif = told.onChange ? new WhatIf({ onChange: told.onChange, onSelect: told.onSelect, onGo }) : null;
    this.log = new Log(told);
    /** Something that a view puts on top: a question, a verdict. */
    this.top = h("div", { class: "top-slot" });
    // On a phone the two groups are two panels.
    this.element = h("div", { class: "side-column" },
      h("div", { class: "side panel", "data-panel": "why" }, this.top, this.compare.element, this.why.element, this.inspector.element, this.whatif?.element),
      h("div", { class: "side panel", "data-panel": "count" }, this.counter.element, this.compare.formulas, this.log.element));
    /** @type {import("./stage.js").Loaded | null} */
    this.loaded = null;
  }

  /** @param {import("./stage.js").Loaded} loaded */
  load(loaded) {
    this.loaded = loaded;
    const { run, beside = null } = loaded;
    for (const one of [this.compare.element, this.compare.formulas]) one.hidden = !beside;
    this.counter.element.hidden = beside !== null;
    if (beside) this.compare.show(beside, run);
  }

  /** @param {import("../model/run.js").Position} position @param {string | null} selection */
  show(position, selection) {
    const { run, beside, hidden = false, question = "" } = /** @type {import("./stage.js").Loaded} */ (this.loaded);
    this.why.show(run, selection, position, { letter: beside ? "B" : "", about: !hidden, question: hidden ? "" : question });
    this.inspector.show(run, memberOf(run, selection), position);
    this.counter.show(run, position.s, { hidden });
    this.whatif?.show(run, selection, position);
    this.whatif?.move(position);
    this.log.show(run, position.s, { hidden });
  }
}

/** The selected member; a step or a message is explained by Why. @param {import("../model/run.js").Run} run @param {string | null} selection */
function memberOf(run, selection) {
  return selection !== null && run.members.has(Number(selection)) ? Number(selection) : null;
}
