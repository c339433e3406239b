# SPDX-License-Identifier: GPL-2.0
"""A result as JSON, as a page and as a plot, below Documentation/benchmarks."""

import json
import os

from lab import PROJECT, say

PAGES = os.path.join(PROJECT, 'Documentation', 'benchmarks')
COMMENT = '.. SPDX-License-Identifier: GPL-2.0\n\n'


def rst_table(columns, rows):
    """A simple table of reStructuredText; an empty first cell would join the row before."""
    text = [[str(cell) or '\\ ' for cell in row] for row in [columns, *rows]]
    widths = [max(len(row[i]) for row in text) for i in range(len(columns))]
    rule = '  '.join('=' * w for w in widths)
    lines = ['  '.join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in text]
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule]) + '\n'


def heading(text, mark):
    return f'{text}\n{mark * len(text)}\n\n'


def environment_text(env):
    if not env:
        return 'A simulation: the figures are the same on every host.'
    boots = '; '.join(f'{b["guests"]} guest{"s" * (b["guests"] > 1)} with {b["addresses"]} '
                      f'address{"es" * (b["addresses"] > 1)} and {b["memory"]} each'
                      for b in env['boots'])
    cpus = env['cpus_of_guest']
    return (f'Kernel {env["kernel"]}, {cpus} processor{"s" * (cpus > 1)} a guest, on a host with '
            f'{env["cpus_of_host"]}; {boots}; {env["rdma"]}. Load of the host meanwhile: '
            f'{" to ".join(map(str, env["load_of_host"]))}. Rates depend on the host; '
            'what is compared was run in turns in one boot, and medians were taken.')


def page(res, env, command):
    out = COMMENT + heading(res.title, '=') + res.about + '\n\n'
    out += f'Made by::\n\n    {command}\n\n{environment_text(env)}\n\n'
    out += f'Result::\n\n    {res.line()}\n\n'
    if res.paper:
        out += heading('The paper and this', '-')
        out += rst_table(['what', 'paper', 'here'], res.paper) + '\n'
    for title, columns, rows in res.tables:
        out += heading(title or 'Measured', '-') + rst_table(columns, rows) + '\n'
    if res.plots:
        out += f'.. image:: {res.name}.svg\n\n'
    for note in res.notes:
        out += note + '\n\n'
    return out.rstrip() + '\n'


def as_json(res, env, command, runs):
    return {'benchmark': res.name, 'command': command, 'environment': env, 'keys': res.keys,
            'paper': [dict(zip(('what', 'paper', 'here'), row)) for row in res.paper],
            'tables': [{'title': t, 'columns': c, 'rows': r} for t, c, r in res.tables],
            'runs': runs}


def histogram(ax, title, x, y, series, logarithmic):
    """How often each value was found; the points have no y."""
    values = [point[0] for points in series.values() for point in points]
    low, high, bins = min(values), max(values), 40
    if logarithmic:
        low = max(low, high / 1e6)
        edges = [low * (high / low) ** (i / bins) for i in range(bins + 1)]
        ax.set_xscale('log')
    else:
        edges = [low + (high - low) * i / bins for i in range(bins + 1)]
    for label, points in series.items():
        ax.hist([point[0] for point in points], bins=edges, histtype='step', label=label)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(title)
    ax.grid(alpha=0.3)
    ax.legend()


def plot(res, path):
    """All plots of a result side by side."""
    try:
        import matplotlib   # pylint: disable=import-outside-toplevel
    except ImportError:
        say('no plots without matplotlib: scripts/setup --bench')
        return
    matplotlib.use('svg')
    matplotlib.rcParams['svg.hashsalt'] = res.name
    from matplotlib import pyplot   # pylint: disable=import-outside-toplevel

    fig, axes = pyplot.subplots(1, len(res.plots), figsize=(6.5 * len(res.plots), 4.2),
                                squeeze=False)
    for ax, (title, x, y, series, logarithmic) in zip(axes[0], res.plots):
        if any(point[1] is None for points in series.values() for point in points):
            histogram(ax, title, x, y, series, logarithmic)
            continue
        bars = any(isinstance(point[0], str) for points in series.values() for point in points)
        for label, points in series.items():
            xs, ys = zip(*points)
            if bars:
                ax.barh(xs, ys)
                ax.invert_yaxis()
            else:
                ax.plot(xs, ys, marker='o', label=label)
        (ax.set_ylabel if bars else ax.set_xlabel)(x)
        (ax.set_xlabel if bars else ax.set_ylabel)(y)
        if logarithmic:
            (ax.set_xscale if bars else ax.set_yscale)('log')
        else:
            (ax.set_xlim if bars else ax.set_ylim)(0)
        ax.set_title(title)
        ax.grid(alpha=0.3)
        if any(series) and not bars:
            ax.legend()
    fig.tight_layout()
    fig.savefig(path, metadata={'Date': None})
    pyplot.close(fig)
    # an XML comment may stand behind the first line; blanks at ends of lines go
    with open(path, encoding='utf-8') as f:
        first, *rest = (line.rstrip() for line in f)
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join([first, '<!-- SPDX-License-Identifier: GPL-2.0 -->', *rest]) + '\n')


def slim(run):
    """A run without what is long and in the tables."""
    return {k: v for k, v in run.items() if k not in ('options', 'per_message', 'groups')}


def write(res, env, command, runs, where=PAGES):
    os.makedirs(where, exist_ok=True)
    base = os.path.join(where, res.name)
    with open(base + '.json', 'w', encoding='utf-8') as f:
        json.dump(as_json(res, env, command, [slim(r) for r in runs]), f, indent=1)
        f.write('\n')
    with open(base + '.rst', 'w', encoding='utf-8') as f:
        f.write(page(res, env, command))
    if res.plots:
        plot(res, base + '.svg')
