# SPDX-License-Identifier: Apache-2.0
"""What was found, for a terminal and as Markdown."""
import textwrap

WIDTH = 110


def block(headline):
    """A headline for a terminal."""
    out = [f"Figure {headline.figure}: {headline.what}"]
    for name in ("paper", "model", "engine", "why"):
        lines = []
        for part in getattr(headline, name).split("; ") if name != "why" else [headline.why]:
            lines += textwrap.wrap(part, WIDTH - 10)
        out += [f"  {name if i == 0 else '':7} {line}" for i, line in enumerate(lines)]
    return "\n".join(out)


def table(headlines):
    out = ["| figure | what | paper | model | engine | why they part |", "| --- | --- | --- | --- | --- | --- |"]
    for h in headlines:
        cells = [h.figure, h.what, *(text.replace("; ", "<br>") for text in (h.paper, h.model, h.engine)), h.why]
        out.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return out


def markdown(command, headlines, partings, left_out, files):
    """The whole report. files: {figure: [names]}."""
    out = ["# The paper's figures", "", f"By `{command}`. All times are virtual: they do not depend on the machine.",
           "", "## Headlines", "", *table(headlines)]
    if partings:
        out += ["", "## Engine and model", "", "```", *partings, "```"]
    if left_out:
        out += ["", "## Not asked of the engine", "", *(f"- {line}" for line in left_out)]
    out += ["", "## Files", ""]
    for figure, names in files.items():
        out.append(f"- figure {figure}: " + ", ".join(f"[{name}]({name})" for name in names))
    return "\n".join(out) + "\n"
