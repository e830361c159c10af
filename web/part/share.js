/** Links and files. A link never holds the key. */

import { h } from "../dom.js";
import { print } from "../url.js";
import { open } from "./commands.js";

const LONGEST = 1800;

/** Copies the address of what is on screen. @param {import("../main.js").App} app */
export async function copyLink(app) {
  const link = new URL(print(app.query), location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    app.toast(`Link copied.${app.query.view === "sim" ? " It opens the same run at the same step." : ""}${app.host === "lab" ? " It works on this machine." : ""}`);
  } catch {
    // Without permission to write to the clipboard, show the link to be copied by hand.
    const field = /** @type {HTMLInputElement} */ (h("input", { value: link, readonly: true, "aria-label": "Link" }));
    open(/** @type {HTMLDialogElement} */ (h("dialog", { class: "sheet" }, h("h2", {}, "Copy this link"), field)));
    field.select();
  }
}

/** Saves `text` as a file. @param {string} name @param {string | Blob} content @param {string} type */
export function save(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = /** @type {HTMLAnchorElement} */ (h("a", { href: address, download: name }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** An SVG as a PNG of twice its size. @param {string} svg @returns {Promise<Blob>} */
export async function toPng(svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * 2;
    canvas.height = image.naturalHeight * 2;
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large."))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** A text, deflated, for the address. @param {string} text */
export async function pack(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text again; null if the address was damaged. @param {string} packed @returns {Promise<string | null>} */
export async function unpack(packed) {
  try {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return await new Response(stream).text();
  } catch {
    return null;
  }
}

/** Whether an address is too long to be passed on. @param {string} address */
export const isTooLong = (address) => address.length > LONGEST;
