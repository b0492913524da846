"""Run the notebooks of the docs, and make a page of each.

python website/notebooks.py       # after a change of a notebook, or of what it prints

The notebooks in docs/notebooks are those that Jupyter opens. This runs their cells and keeps what
they show, as Jupyter would (text, cards in HTML, figures), and writes beside each notebook a page
for the site. It needs no Jupyter.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

from matplotlib import pyplot
from PIL import Image

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "notebooks"
DPI = 90


def run(notebook: dict[str, Any]) -> None:
    """Run all cells of code in their order, and put what they show beside them."""
    pyplot.switch_backend("Agg")
    pyplot.close("all")  # A figure that was open before is none of the notebook's.
    names: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(codes, start=1):
        cell["execution_count"] = number
        cell["outputs"] = _outputs("".join(cell["source"]), names, number)


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run one cell: what it prints, the value of its last line, and the figures it draws."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None and not source.rstrip().endswith(";"):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        outputs.append({"output_type": "execute_result", "execution_count": number,
                        "data": data, "metadata": {}})  # fmt: skip
    for figure in map(pyplot.figure, pyplot.get_fignums()):
        large, small = io.BytesIO(), io.BytesIO()
        figure.savefig(large, format="png", dpi=DPI)
        Image.open(large).convert("RGB").quantize(64).save(small, format="png", optimize=True)
        png = base64.b64encode(small.getvalue()).decode()
        outputs.append({"output_type": "display_data", "data": {"image/png": png}, "metadata": {}})
    pyplot.close("all")
    return outputs


def page(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook, in Markdown, and its figures by the names of their files."""
    parts, figures = [], {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(figures) + 1}.png"
                figures[file] = base64.b64decode(data["image/png"])
                parts.append(f"![What this cell draws]({file})")
            elif "text/html" in data:
                parts.append(f'<div class="card">{"".join(data["text/html"])}</div>')
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
                parts.append(f"```text\n{text}\n```")
    parts.insert(1, f"This page is a notebook: [download it]({name}.ipynb) and run it in Jupyter.")
    return "\n\n".join(parts) + "\n", figures


def main() -> None:
    """Run all notebooks, and write them and their pages."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        run(notebook)
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        markdown, figures = page(notebook, path.stem)
        path.with_suffix(".md").write_text(markdown, encoding="utf-8")
        for file, image in figures.items():
            (NOTEBOOKS / file).write_bytes(image)


if __name__ == "__main__":
    main()
