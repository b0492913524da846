/* Formulas are plain text, R_t and E_{σ²/c}; here their indices become subscripts.
   What carries an index is one letter, so that names such as norm_bound stay as they are. */
const BASE = /(?:\b(?:max|min|sup|inf)|(?<![A-Za-z]{2}|_)[\p{L}∂][\u0302-\u0304]?|[‖|)])[*′²]*/u;
const INDEX = /\{(?:[^{}]|\{[^{}]*\})+\}|\([^()]+\)|(?:min|max|axis|out|in|mm)\b|[A-Za-z]\d?|\d+|[\p{Script=Greek}⊥]/u;
const INDEXED = new RegExp(`(${BASE.source})_(${INDEX.source})`, "gu");

function withSubscripts(text) {
  const pieces = document.createDocumentFragment();
  let done = 0;
  for (const found of text.matchAll(INDEXED)) {
    pieces.append(text.slice(done, found.index) + found[1]);
    const index = document.createElement("sub");
    index.append(withSubscripts(found[2].replace(/^[{(]|[})]$/g, "")));
    pieces.append(index);
    done = found.index + found[0].length;
  }
  pieces.append(text.slice(done));
  return pieces;
}

document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article");
  if (!article) return;
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    if (node.data.includes("_") && !node.parentElement.closest("code, pre, .doc")) {
      node.replaceWith(withSubscripts(node.data));
    }
  }
});
