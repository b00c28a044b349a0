"use strict";

// Tables: a click on a head sorts by its column, a second click the other way round; what is missing stays last.
function keyOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.n !== undefined) return Number(cell.dataset.n);
  return cell.firstChild ? cell.firstChild.textContent.trim() : "";
}

function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
}

function sort(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const descending = heads[column].getAttribute("aria-sort") === "ascending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
  rows.sort(([a], [b]) => compare(a, b, descending ? -1 : 1));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, column));
  });
}

// One box for the rows of all tables: those stay that have every word.
const box = document.getElementById("filter");
box.closest("p").hidden = false;
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...document.querySelectorAll("table.sortable tbody tr")];
  for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  const left = rows.filter((row) => !row.hidden).length;
  document.getElementById("left").textContent = words.length ? `${left} of ${rows.length} rows` : "";
});

// Pictures: what a mark says is shown at once, and for touch and keyboard too, instead of by the browser's own title.
const tip = document.getElementById("tip");

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(x + 14, window.innerWidth - box.width - 8);
  const top = y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function showTipAt(mark) {
  const box = mark.getBoundingClientRect();
  showTip(mark.getAttribute("aria-label"), box.left + box.width / 2, box.top + box.height / 2);
}

function hideTip() {
  tip.hidden = true;
}

for (const svg of document.querySelectorAll("figure svg")) {
  const marks = [...svg.querySelectorAll(".mark")];
  const stops = []; // one for each text: the whisker of a bar says the same as the bar
  for (const mark of marks) {
    const text = mark.querySelector("title").textContent;
    mark.querySelector("title").remove();
    mark.setAttribute("aria-label", text);
    if (stops.some((stop) => stop.getAttribute("aria-label") === text)) mark.setAttribute("aria-hidden", "true");
    else stops.push(mark);
    mark.addEventListener("pointermove", (event) => showTip(text, event.clientX, event.clientY));
    mark.addEventListener("pointerleave", hideTip);
    mark.addEventListener("click", (event) => showTip(text, event.clientX, event.clientY));
  }
  // Vega draws layer by layer; keys go from the top to the bottom, and from the left to the right.
  const places = new Map(stops.map((mark) => [mark, mark.getBoundingClientRect()]));
  const middle = (box) => Math.round((box.top + box.height / 2) / 4);
  stops.sort((a, b) => {
    const [one, other] = [places.get(a), places.get(b)];
    return middle(one) - middle(other) || one.left - other.left;
  });
  stops.forEach((mark, place) => {
    mark.setAttribute("tabindex", place ? "-1" : "0");
    mark.addEventListener("focus", () => showTipAt(mark));
    mark.addEventListener("blur", hideTip);
    mark.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1 };
      const next = { ...steps, Home: 0, End: stops.length - 1 }[event.key];
      if (next === undefined || !stops[next]) return;
      event.preventDefault();
      mark.setAttribute("tabindex", "-1");
      stops[next].setAttribute("tabindex", "0");
      stops[next].focus();
    });
  });
}

document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
// The browser brings a focused mark into view by scrolling: its text goes with it. Any other text stays behind.
const onScroll = () => (document.activeElement.matches(".mark") ? showTipAt(document.activeElement) : hideTip());
document.addEventListener("scroll", onScroll, true);
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
