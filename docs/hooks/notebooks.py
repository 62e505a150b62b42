"""A notebook of docs/ is a page of the site, with its outputs as they were saved; the notebook itself is beside it."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from mkdocs.structure.files import File, Files

#: Outputs by page: HTML goes in after Markdown was read, which would change it.
_OUTPUTS: dict[str, list[str]] = {}
_MARK = re.compile(r"<p>OUTPUT-(\d+)</p>")


def on_files(files: Files, config: Any) -> Files:
    """A page for each notebook."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        place = file.src_uri.removesuffix(".ipynb") + ".md"
        text, _OUTPUTS[place] = page(json.loads(file.content_string))
        name = file.src_uri.rpartition("/")[2]
        text += f"\n[The notebook]({name}){{ download }}\n"
        files.append(File.generated(config, place, content=text))
    return files


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """The page with the outputs of its cells."""
    outputs = _OUTPUTS.get(page.file.src_uri, [])
    return _MARK.sub(lambda mark: outputs[int(mark[1])], content)


def page(notebook: dict[str, Any]) -> tuple[str, list[str]]:
    """A notebook in Markdown, and the HTML of what stands there as OUTPUT-0, OUTPUT-1, ..."""
    parts: list[str] = []
    outputs: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(f"OUTPUT-{len(outputs)}")
            outputs.append(f'<div class="cell-output">{shown(output)}</div>')
    return "\n\n".join(parts) + "\n", outputs


def shown(output: dict[str, Any]) -> str:
    """An output of a cell: its HTML, its picture, or its text."""
    if output["output_type"] == "stream":
        return f"<pre>{html.escape(''.join(output['text']))}</pre>"
    if output["output_type"] == "error":
        raise ValueError(f"a cell ended in {output['ename']}: {output['evalue']}")
    data = {kind: "".join(text) if isinstance(text, list) else text for kind, text in output["data"].items()}
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return str(data[kind])
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">'
    return f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"
