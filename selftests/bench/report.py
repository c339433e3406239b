# SPDX-License-Identifier: GPL-2.0
"""A result as JSON, as a page and as a plot, below Documentation/benchmarks."""

import itertools
import json
import os
import re
import textwrap

from lab import PROJECT, RUNS, Result, say

PAGES = os.path.join(PROJECT, 'Documentation', 'benchmarks')
COMMENT = '.. SPDX-License-Identifier: GPL-2.0\n\n'
WIDTH = 100                     # of a page's lines


def wrap(text, width=WIDTH, indent=''):
    """Lines no wider than that, but for single words."""
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=2 * indent,
                         break_long_words=False, break_on_hyphens=False)


def cell_text(cell):
    """An empty first cell would join the row before, and a mark would begin a list."""
    return re.sub(r'^([-+*])(?= |$)', r'\\\1', str(cell)) or '\\ '


def column_widths(text):
    """As wide as the cells are; where that is too wide, the widest are wrapped, not the first."""
    columns = list(zip(*text))
    widths = [max(map(len, column)) for column in columns]
    least = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        spare = [i for i in range(1, len(widths)) if widths[i] > max(2, least[i])]
        if not spare:
            break
        widest = max(spare, key=lambda i: widths[i])
        # the next step at which a line of it breaks elsewhere
        widths[widest] = max(len(line) for cell in columns[widest]
                             for line in wrap(cell, widths[widest] - 1))
    return widths


def rst_table(columns, rows):
    """A simple table of reStructuredText."""
    text = [[cell_text(cell) for cell in row] for row in [columns, *rows]]
    widths = column_widths(text)
    rule = '  '.join('=' * w for w in widths)
    lines = []
    for row in text:
        cells = [[row[0]], *(wrap(cell, w) for cell, w in zip(row[1:], widths[1:]))]
        lines.append('\n'.join(
            '  '.join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip()
            for line in itertools.zip_longest(*cells, fillvalue='')))
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule]) + '\n'


def heading(text, mark):
    return f'{text}\n{mark * len(text)}\n\n'


def environment_text(env):
    boots = '; '.join(f'{b["guests"]} guest{"s" * (b["guests"] > 1)} with {b["addresses"]} '
                      f'address{"es" * (b["addresses"] > 1)} and {b["memory"]} each'
                      for b in env['boots'])
    if 'fabric' in env:
        costs = ', '.join(f'{what} {ns}' for what, ns in env['costs_ns'].items())
        return (f'In guests of kernel {env["kernel"]} with one processor each, {env["rdma"]}, '
                f'cables and wires {env["fabric"]}; ns of processor time: {costs}.')
    cpus = env['cpus_of_guest']
    return (f'Kernel {env["kernel"]}, {cpus} processor{"s" * (cpus > 1)} a guest, on a host with '
            f'{env["cpus_of_host"]}; {boots}; {env["rdma"]}. Load of the host meanwhile: '
            f'{" to ".join(map(str, env["load_of_host"]))}. Rates depend on the host; '
            'what is compared was run in turns in one boot, and medians were taken.')


def paragraph(text, indent=''):
    return '\n'.join(wrap(text, indent=indent)) + '\n\n'


def page(res, env, command):
    out = COMMENT + heading(res.title, '=') + paragraph(res.about)
    out += f'Made by::\n\n    {command}\n\n{paragraph(environment_text(env))}'
    out += f'Result::\n\n{paragraph(res.line(), " " * 4)}'
    if res.paper:
        out += heading('The paper and this', '-')
        out += rst_table(['what', 'paper', 'here'], res.paper) + '\n'
    for title, columns, rows in res.tables:
        out += heading(title or 'Measured', '-') + rst_table(columns, rows) + '\n'
    if res.plots:
        out += f'.. image:: {res.name}.svg\n\n'
    for note in res.notes:
        out += paragraph(note)
    return out.rstrip() + '\n'


# what a table and a plot are in a file
TABLE = ('title', 'columns', 'rows')
PLOT = ('title', 'x', 'y', 'series', 'logarithmic')


def as_json(res, env, command):
    """All that the page and the plots are made of."""
    return {'benchmark': res.name, 'title': res.title, 'about': res.about, 'command': command,
            'environment': env, 'keys': res.keys, 'paper': res.paper,
            'tables': [dict(zip(TABLE, table)) for table in res.tables],
            'plots': [dict(zip(PLOT, drawn)) for drawn in res.plots], 'notes': res.notes}


def laid_out(value, indent=''):
    """JSON with a line for whatever fits into one: a row, a series."""
    text = json.dumps(value)
    if not isinstance(value, (dict, list)) or not value or len(indent + text) < WIDTH:
        return text
    inner = indent + ' '
    if isinstance(value, dict):
        parts = [f'{json.dumps(k)}: {laid_out(v, inner)}' for k, v in value.items()]
    else:
        parts = [laid_out(v, inner) for v in value]
    ends = '{}' if isinstance(value, dict) else '[]'
    return f'{ends[0]}\n{inner}' + f',\n{inner}'.join(parts) + f'\n{indent}{ends[1]}'


def read(name, where=PAGES):
    """What write() wrote: the result, its environment, its command."""
    with open(os.path.join(where, name + '.json'), encoding='utf-8') as f:
        found = json.load(f)
    res = Result(found['benchmark'], found['title'], found['about'])
    res.keys, res.paper, res.notes = found['keys'], found['paper'], found['notes']
    res.tables = [tuple(table[k] for k in TABLE) for table in found['tables']]
    res.plots = [tuple(drawn[k] for k in PLOT) for drawn in found['plots']]
    return res, found['environment'], found['command']


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


def write(res, env, command, where=PAGES):
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, res.name + '.json'), 'w', encoding='utf-8') as f:
        f.write(laid_out(as_json(res, env, command)) + '\n')
    render(res.name, where)


def render(name, where=PAGES):
    """The page and the plots, from the figures that were written."""
    res, env, command = read(name, where)
    base = os.path.join(where, name)
    with open(base + '.rst', 'w', encoding='utf-8') as f:
        f.write(page(res, env, command))
    if res.plots:
        plot(res, base + '.svg')


def write_runs(name, runs):
    """Every run as spindle-perf told it; pages and plots need none of that."""
    os.makedirs(RUNS, exist_ok=True)
    path = os.path.join(RUNS, name + '.runs.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(runs, f, indent=1)
        f.write('\n')
    say(f'{len(runs)} raw runs: {os.path.relpath(path, PROJECT)}')
