"use strict";
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const order = (a, b) => {
        const x = key(a), y = key(b), numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return numbers ? x - y : x.localeCompare(y);
      };
      body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * order(a, b)));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
  });
}
const search = document.getElementById("search");
if (search) {
  search.hidden = false;
  const places = [...document.querySelectorAll("[data-s]")];
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(word => word);
    for (const place of places) {
      const text = place.dataset.s;
      place.classList.toggle("out", !words.every(word => text.includes(word)));
    }
  });
}
// A printed page has everything: nobody can open a fold on paper.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(fold => { fold.open = true; }));
