// The search dialog, loaded when a reader first wants to search. `element`, `loadScript` and `root` are those of book.js.
// The index is a plain script too, so that it can be loaded from a disk.
"use strict";

let pages;
function loadIndex() {
  pages ??= new Promise((resolve, reject) => {
    window.bookSearch = resolve;
    loadScript("search-index.js").catch(reject);
  });
  return pages;
}

const plain = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();

function score(words, title, text, page) {
  let sum = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    const points = (title.includes(word) ? 10 : 0) + (page.includes(word) ? 3 : 0) + (at >= 0 ? 2 + 1 / (1 + at / 500) : 0);
    if (!points) return 0;
    sum += points;
  }
  return sum + (words.length > 1 && text.includes(words.join(" ")) ? 5 : 0);
}

function find(index, query) {
  const words = plain(query).split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const hits = [];
  for (const [href, page, sections] of index) {
    for (const [id, title, text] of sections) {
      const points = score(words, plain(title), plain(text), plain(page));
      if (points) hits.push({ points, href: id ? `${href}#${id}` : href, page, title, text, words });
    }
  }
  return hits.sort((a, b) => b.points - a.points).slice(0, 20);
}

function excerpt({ text, words }) {
  const lower = plain(text);
  const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((at) => at >= 0), text.length);
  const start = first < text.length ? Math.max(0, first - 50) : 0;
  const piece = (start ? "… " : "") + text.slice(start, start + 170) + (start + 170 < text.length ? " …" : "");
  const out = element("span", { className: "hit-text" });
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  piece.split(pattern).forEach((part, i) => out.append(i % 2 ? element("mark", { textContent: part }) : part));
  return out;
}

function hitItem(hit) {
  const link = element("a", { href: root + hit.href }, element("span", { className: "hit-title", textContent: hit.title }));
  if (hit.title !== hit.page) link.append(element("span", { className: "hit-page", textContent: hit.page }));
  link.append(excerpt(hit));
  return element("li", {}, link);
}

function searchDialog() {
  const input = element("input", { type: "search", placeholder: "Search the book", autocomplete: "off" });
  input.setAttribute("aria-label", "Search the book");
  const close = element("button", { type: "button", className: "tool", textContent: "Close" });
  const list = element("ol");
  const note = element("p", { className: "search-note" });
  note.setAttribute("role", "status");
  const dialog = element("dialog", { className: "search" }, element("div", { className: "search-head" }, input, close), list, note);
  dialog.setAttribute("aria-label", "Search");
  const update = async () => {
    try {
      const hits = find(await loadIndex(), input.value);
      list.replaceChildren(...hits.map(hitItem));
      note.textContent = !input.value.trim() ? "Words of a title, a sentence or a piece of code."
        : hits.length ? `${hits.length} ${hits.length === 1 ? "place" : "places"}` : "Nothing found.";
    } catch {
      note.textContent = "The search index could not be read.";
    }
  };
  input.addEventListener("input", update);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") list.querySelector("a")?.click();
  });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [input, ...list.querySelectorAll("a")];
    stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(document.activeElement) + step))].focus();
    event.preventDefault();
  });
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("a")) dialog.close();
  });
  document.body.append(dialog);
  return { dialog, input, update };
}
