const box = document.getElementById("filter");
const rows = [...document.querySelectorAll("tbody tr")];
const families = [...document.querySelectorAll("details")].map(it => [it, it.open]);
const texts = rows.map(row => (row.textContent + " " + row.dataset.tags).toLowerCase());
box.hidden = false;
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(word => word);
  rows.forEach((row, nth) => { row.hidden = !words.every(word => texts[nth].includes(word)); });
  for (const [family, wasOpen] of families) {
    const hit = family.querySelector("tbody tr:not([hidden])") !== null;
    family.hidden = !hit;
    family.open = words.length > 0 ? hit : wasOpen;
  }
});
