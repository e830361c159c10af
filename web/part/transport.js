/** The bar at the foot of a run: buttons, the scrubber, where it stands and how fast it goes. */

import { button, h, s, set } from "../dom.js";
import { short, time } from "../model/words.js";
import { FLIGHT } from "./player.js";
import { Scrubber } from "./scrubber.js";

const ICONS = {
  first: "M3,2V12M12,2L5,7L12,12Z",
  back: "M9,2L4,7L9,12",
  play: "M4,2L12,7L4,12Z",
  pause: "M4,2V12M10,2V12",
  forward: "M5,2L10,7L5,12",
};

export class Transport {
  /** @param {import("./player.js").Player} player */
  constructor(player) {
    this.player = player;
    this.scrubber = new Scrubber({
      onTime: (t, settled) => player.run && player.go(player.run.atTime(t), { settled }),
    });
    this.icon = s("path", { d: ICONS.play });
    this.play = control("Play", "Space", this.icon, () => player.toggle(), "primary play");
    this.step = h("strong", {});
    this.time = h("span", { class: "time" });
    this.pace = h("span", { class: "pace" });
    this.busy = h("span", { class: "busy", hidden: true });
    this.element = h("div", { class: "transport", role: "group", "aria-label": "Player" },
      h("div", { class: "controls" },
        control("To the first step", "Home", path("first"), () => player.toStart(), "first"),
        control("One step back", "ArrowLeft", path("back"), () => player.step(-1)),
        this.play,
        control("One step forward", "ArrowRight", path("forward"), () => player.step(1))),
      this.scrubber.element,
      h("div", { class: "where" },
        this.step, this.time,
        h("span", { class: "speed" },
          button("−", () => player.changeSpeed(1 / 2), { class: "plain", "aria-label": "Half the speed", title: "Half the speed (Shift ↓)" }),
          this.pace,
          button("+", () => player.changeSpeed(2), { class: "plain", "aria-label": "Twice the speed", title: "Twice the speed (Shift ↑)" }))),
      this.busy);
  }

  /** @param {import("./scrubber.js").Content} content */
  load(content) {
    this.scrubber.load(content);
    this.update();
  }

  /** What the player says. */
  update() {
    const { player, scrubber } = this;
    const { run } = player;
    if (!run) return;
    const { s: done } = player.shown;
    scrubber.show(player.shown);
    set(this.icon, { d: player.playing ? ICONS.pause : ICONS.play });
    set(this.play, { "aria-label": player.playing ? "Pause" : "Play", title: player.playing ? "Pause (Space)" : "Play (Space)" });
    const total = scrubber.content?.hidden ? "" : ` of ${run.length}`;
    const round = player.rounds > 1 ? ` ×${player.rounds}` : "";
    set(this.step, { text: `step ${done}${total}${round}` });
    set(this.time, { text: time(player.shown.t) });
    const unit = player.clock?.unit ?? run.d;
    set(this.pace, { "data-short": `×${short(player.speed)}`, text: `${time(unit)} takes ${short(FLIGHT / 1000 / player.speed)} s` });
  }

  /** A thin bar while something is computed. @param {boolean} on */
  compute(on) {
    this.busy.hidden = !on;
  }
}

/** @param {string} title @param {string} key @param {SVGElement} icon @param {() => void} run @param {string} [name] */
function control(title, key, icon, run, name = "") {
  return h("button", { type: "button", class: `square ${name}`, title: `${title} (${key.replace("Arrow", "").replace("Left", "←").replace("Right", "→")})`, "aria-label": title, "aria-keyshortcuts": key, on: { click: run } },
    s("svg", { viewBox: "0 0 14 14", width: 14, height: 14, class: "icon", "aria-hidden": "true" }, icon));
}

/** @param {keyof typeof ICONS} name */
const path = (name) => s("path", { d: ICONS[name] });
