// What a page can do beyond being read: theme, copy, search, and marking where the reader is. Pages are complete without it.
"use strict";

const root = document.body.dataset.root;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Theme -------------------------------------------------------------------------------------------------------------

function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key) || "";
    value ? localStorage.setItem(key, value) : localStorage.removeItem(key);
  } catch { /* storage may be forbidden; the choice then lasts for this page */ }
  return "";
}

function setUpTheme() {
  const choice = document.querySelector(".theme");
  const menu = choice.querySelector("select");
  choice.hidden = false;
  menu.value = stored("theme");
  menu.addEventListener("change", () => {
    stored("theme", menu.value);
    if (menu.value) document.documentElement.dataset.theme = menu.value;
    else delete document.documentElement.dataset.theme;
  });
}

// Code --------------------------------------------------------------------------------------------------------------

function setUpCopy() {
  const said = element("p", { className: "unseen" });
  said.setAttribute("role", "status");
  document.querySelector("main").append(said);
  for (const block of document.querySelectorAll("div.sourceCode")) {
    if (block.closest(".output")) continue;
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      await copy(block.querySelector("pre").innerText);
      button.textContent = said.textContent = "Copied";
      button.classList.add("done");
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; button.classList.remove("done"); }, 1500);
    });
    block.append(button);
  }
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// What scrolls sideways must be reachable by keyboard, and nothing else should be.
function setUpScrolling() {
  const boxes = document.querySelectorAll("main pre, main .scroll, main .equation");
  const update = () => {
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  update();
  addEventListener("resize", update);
  document.addEventListener("toggle", update, true);
}

// Where the reader is -----------------------------------------------------------------------------------------------

function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const own = target.matches("section") ? target.querySelector(":scope > details.solution") : null;
  for (let fold = own || target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
}

function setUpToc() {
  const links = new Map([...document.querySelectorAll(".toc a")].map((a) => [a.hash.slice(1), a]));
  if (!links.size) return;
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? seen.add(target.id) : seen.delete(target.id);
    const current = [...links.keys()].filter((id) => seen.has(id)).pop();
    for (const [id, a] of links) id === current ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current");
  }, { rootMargin: "-64px 0px -70% 0px" });
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (section) watch.observe(section);
  }
  document.getElementById("toc").addEventListener("click", (event) => {
    const toc = event.currentTarget;
    if (event.target.closest("a") && toc.matches(":popover-open")) toc.hidePopover();
  });
  document.querySelector(".contents [aria-current]")?.scrollIntoView({ block: "nearest" });
}

// Printing shows what is folded, in browsers whose style sheets cannot.
function setUpPrint() {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of closed) fold.open = false; });
}

// Search: the index is a plain script, loaded when it is first needed, so that it works from a disk too --------------

let pages;
function loadIndex() {
  pages ??= new Promise((resolve, reject) => {
    window.bookSearch = resolve;
    document.head.append(element("script", { src: root + "search-index.js", onerror: reject }));
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

function setUpSearch() {
  const button = document.querySelector(".search-open");
  let search;
  const open = () => {
    search ??= searchDialog();
    if (!search.dialog.open) search.dialog.showModal();
    search.input.select();
    search.update();
  };
  button.hidden = false;
  button.addEventListener("click", open);
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (typing || !(slash || ((event.ctrlKey || event.metaKey) && event.key === "k"))) return;
    event.preventDefault();
    open();
  });
}

setUpTheme();
setUpCopy();
setUpScrolling();
setUpToc();
setUpPrint();
setUpSearch();
openTarget();
addEventListener("hashchange", openTarget);
