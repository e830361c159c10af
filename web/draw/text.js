/** How wide texts are, and what a token of colour is now: for what is laid out or drawn by hand. */

const FONTS = { label: "560 12px", name: "650 14px" };

/** @type {CanvasRenderingContext2D | null} */
let pen = null;
/** @type {Map<string, number>} */
const widths = new Map();

// Widths that were measured before the page's own font was there are wrong.
document.fonts?.addEventListener?.("loadingdone", () => widths.clear());

/** In pixels. @param {string} text @param {keyof typeof FONTS} font */
export function measure(text, font) {
  const key = `${font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    pen ??= document.createElement("canvas").getContext("2d");
    if (!pen) return text.length * 7;
    pen.font = `${FONTS[font]} Inter, "Segoe UI", system-ui, sans-serif`;
    width = Math.ceil(pen.measureText(text).width);
    if (widths.size > 5000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** A token of tokens.css as a canvas understands it. @param {HTMLElement} element @param {string} name */
export function colour(element, name) {
  const before = element.style.getPropertyValue("color");
  element.style.setProperty("color", `var(--${name})`);
  const found = getComputedStyle(element).color;
  if (before) element.style.setProperty("color", before);
  else element.style.removeProperty("color");
  return found;
}

/** @type {Set<WeakRef<{ themeChanged(): void }>>} */
const watchers = new Set();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const watcher of watchers) watcher.deref()?.themeChanged();
});

/** Reports a change of theme as long as the watcher is in use; a watcher need not be removed. @param {{ themeChanged(): void }} watcher */
export function watchTheme(watcher) {
  for (const other of watchers) if (!other.deref()) watchers.delete(other);
  watchers.add(new WeakRef(watcher));
}
