/**
 * Elements. The content-security policy forbids inline styles and parsed markup, so everything on the page is made here:
 * `h` makes HTML, `s` makes SVG.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Record<string, any>} Attributes names and values; `on` is an object of listeners, `style` one of CSS
 *   properties, `text` the text within. `null`, `undefined` and `false` leave an attribute out.
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/** Makes an HTML element. @param {string} tag @param {Attributes} [attributes] @param {...(Child | Child[])} children */
export function h(tag, attributes, ...children) {
  return /** @type {HTMLElement} */ (fill(document.createElement(tag), attributes, children));
}

/** Makes an SVG element. @param {string} tag @param {Attributes} [attributes] @param {...(Child | Child[])} children */
export function s(tag, attributes, ...children) {
  return /** @type {SVGElement} */ (fill(document.createElementNS(SVG, tag), attributes, children));
}

/** Sets attributes of an element that exists. @param {Element} element @param {Attributes} attributes */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, one] of Object.entries(value)) {
        /** @type {HTMLElement} */ (element).style.setProperty(property, String(one));
      }
    } else if (name === "text") {
      if (element.textContent !== String(value)) element.textContent = String(value);
    } else if (value === null || value === undefined || value === false) {
      element.removeAttribute(name);
    } else {
      // While a view is being laid out, a rectangle may not have room yet; a negative size is an error in SVG.
      const size = (name === "width" || name === "height") && Number(value) < 0 ? 0 : value;
      const text = size === true ? "" : String(size);
      if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
  }
  return element;
}

/** @param {Element} element @param {Attributes | undefined} attributes @param {(Child | Child[])[]} children */
function fill(element, attributes, children) {
  if (attributes) set(element, attributes);
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(/** @type {any} */ (child));
  }
  return element;
}

/**
 * Keeps `parent`'s children in step with `items`: one element for each key, made once and updated ever after, so that
 * focus, hover and transitions survive.
 * @template T
 * @param {Element} parent @param {Iterable<T>} items @param {(item: T) => string | number} key
 * @param {(item: T) => Element} make @param {(element: Element, item: T) => void} [update]
 */
export function keyed(parent, items, key, make, update) {
  /** @type {Map<string, Element>} */
  const old = new Map();
  for (const child of parent.children) old.set(child.getAttribute("data-key") ?? "", child);
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let element = old.get(name);
    if (element) {
      old.delete(name);
    } else {
      element = make(item);
      element.setAttribute("data-key", name);
    }
    update?.(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const left of old.values()) left.remove();
}

/** A button. @param {string} text @param {() => void} run @param {Attributes} [attributes] */
export function button(text, run, attributes = {}) {
  const { key, ...rest } = attributes;
  return h(
    "button",
    { type: "button", "aria-keyshortcuts": key, on: { click: run }, ...rest },
    text,
    key && h("kbd", {}, key),
  );
}

/** A region with a small heading. @param {string} title @param {Attributes} attributes @param {...(Child | Child[])} children */
export function region(title, attributes, ...children) {
  const { note, ...rest } = attributes;
  return h(
    "section",
    { "aria-label": title, ...rest },
    h("div", { class: "head" }, h("h2", {}, title), note && h("p", { class: "note" }, note)),
    children.flat(),
  );
}
