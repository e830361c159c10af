/**
 * The members as a list of buttons, for keyboards and screen readers. It is not seen; the picture shows which member has the
 * focus. Arrow keys go from one to the next, Enter selects, Enter again opens the menu.
 */

import { button, h, keyed, set } from "../dom.js";

export class MemberList {
  /** @param {{ press: (id: string) => void, focus: (id: string | null) => void, key: (event: KeyboardEvent, id: string) => boolean }} handlers `key` says whether it took the key */
  constructor(handlers) {
    this.handlers = handlers;
    this.element = h("ul", { class: "unseen", "aria-label": "Members" });
    /** @type {string | null} */
    this.focused = null;
  }

  /** @param {import("./member.js").Member[]} members @param {string | null} selection */
  draw(members, selection) {
    const current = members.find(({ id }) => id === selection)?.id ?? this.focused ?? members[0]?.id;
    keyed(this.element, members, ({ id }) => id, ({ id }) => h("li", {}, this.button(id)), (item, member) => {
      const state = !member.up ? "down" : [member.role, member.paused && "paused", member.drained && "drained"].filter(Boolean).join(", ");
      set(/** @type {Element} */ (item.firstElementChild), {
        text: `${member.name}: ${state}`, "aria-pressed": String(selection === member.id), tabindex: member.id === current ? 0 : -1,
      });
    });
  }

  /** @param {string} id */
  button(id) {
    const element = button("", () => this.handlers.press(id), { "data-id": id });
    const focus = (/** @type {string | null} */ now) => {
      this.focused = now;
      this.handlers.focus(now);
    };
    element.addEventListener("focus", () => element.matches(":focus-visible") && focus(id));
    element.addEventListener("blur", () => focus(null));
    element.addEventListener("keydown", (event) => {
      if (this.handlers.key(event, id)) return event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (!step) return;
      event.preventDefault();
      this.go(step);
    });
    return element;
  }

  /** Moves the focus to the next member, or to the one before. @param {1 | -1} step */
  go(step) {
    const buttons = [...this.element.querySelectorAll("button")];
    const here = buttons.findIndex((one) => one === document.activeElement);
    const from = here < 0 ? buttons.findIndex((one) => one.getAttribute("tabindex") === "0") - step : here;
    buttons[(from + step + buttons.length) % buttons.length]?.focus();
  }
}
