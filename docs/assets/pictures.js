// A click on a figure opens it alone, in full size. On a phone a figure of several panels would be too small to read:
// site.css then shows its panels below each other. `data-cuts` says where one panel ends and the next begins, in per
// cent of the width.
for (const figure of document.querySelectorAll("article img")) {
  if (figure.closest("a")) continue;
  const link = document.createElement("a");
  link.href = figure.src;
  figure.replaceWith(link);
  link.append(figure);
  if (!figure.dataset.cuts) continue;
  const cuts = [0, ...figure.dataset.cuts.split(" ").map(Number), 100];
  const panels = document.createElement("span");
  panels.className = "panels";
  cuts.slice(1).forEach((right, i) => {
    const left = cuts[i];
    const part = figure.cloneNode();
    part.style.width = `${(100 * 100) / (right - left)}%`;
    part.style.marginLeft = `${(-100 * left) / (right - left)}%`;
    if (i > 0) part.alt = "";
    const panel = document.createElement("span");
    panel.append(part);
    panels.append(panel);
  });
  link.append(panels);
}
