// Formulas are plain text, so that they can be read in the sources: R_t, λ_max, Σ_(i in c), D^(−1/2).
// This sets what follows _ and ^ as subscripts and superscripts. Without it the pages read as they are written.
(() => {
  // A group in brackets, some words, a number, or a letter (with another index: α,t−1). Names such as
  // noise_scale, which go on with letters, are none of these; but no name has a ^ in it.
  const index =
    "\\((?<group>[^()]*(?:\\([^()]*\\)[^()]*)*)\\)|\\{(?<braced>[^{}]*)\\}|(?<plain>" +
    "(?<=\\^)(?:\\d+(?![\\d.])|[A-Za-zα-ω]\\w*)|" +
    "(?:max|min|mm|out|in|ij|si|½|[−-]?\\d+(?:\\.\\d+)?|[A-Z](?![A-Z])|" +
    "(?:alpha|beta|lambda|[a-zα-ωΑ-Ω⊥]\\d?)(?:,[a-zα-ω](?:[−-]\\d)?)?)(?![a-z_]))";
  const pattern = new RegExp(`(?<=[\\p{L}\\p{M}\\p{N}\\)\\]}‖|′'~∂⁰¹²³*∗])(?<kind>[_^])(?:${index})`, "gu");
  const set = (text) => {
    const parts = [];
    let done = 0;
    for (const found of text.matchAll(pattern)) {
      const { kind, plain } = found.groups;
      const group = found.groups.group ?? found.groups.braced;
      const raised = document.createElement(kind === "_" ? "sub" : "sup");
      raised.append(...set(group ?? plain));
      parts.push(text.slice(done, found.index), raised);
      done = found.index + found[0].length;
    }
    return [...parts, text.slice(done)];
  };
  const walker = document.createTreeWalker(
    document.querySelector("article") ?? document.body,
    NodeFilter.SHOW_TEXT,
    (node) =>
      /[_^]/.test(node.data) && !node.parentElement.closest("code, pre, kbd, script, style, svg, textarea")
        ? NodeFilter.FILTER_ACCEPT
        : NodeFilter.FILTER_REJECT,
  );
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) node.replaceWith(...set(node.data));
})();
