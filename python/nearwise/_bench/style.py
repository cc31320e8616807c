"""The look of the page, in light and dark. Names of plots' colors are those of plots.py."""

_LIGHT = [
    "#00796b", "#1565c0", "#6a1b9a", "#c62828", "#8d6e63", "#ef6c00", "#9e9d24",
    "#546e7a", "#d81b60", "#00838f", "#5d4037", "#7cb342", "#455a64",
]
_DARK = [
    "#4db6ac", "#64b5f6", "#ba68c8", "#ef7a7a", "#bcaaa4", "#ffb74d", "#dce775",
    "#b0bec5", "#f48fb1", "#4dd0e1", "#d7ccc8", "#aed581", "#90a4ae",
]


def _variables(ink: str, paper: str, grid: str, panel: str, mark: str, series: list[str]) -> str:
    colors = "".join(f"--series-{number}:{color};" for number, color in enumerate(series))
    return f"--ink:{ink};--paper:{paper};--grid:{grid};--panel:{panel};--mark:{mark};{colors}"


CSS = f"""
:root {{color-scheme: light dark; {_variables("#1d2529", "#ffffff", "#d5dbde", "#f1f5f5", "#00695c", _LIGHT)}}}
@media (prefers-color-scheme: dark) {{
  :root {{{_variables("#dfe5e8", "#14191c", "#3a454b", "#1e2528", "#80cbc4", _DARK)}}}
}}
body {{background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 78rem; padding: 0 1.2rem}}
h1 {{font-size: 1.5rem; margin: 0}}
h2 {{font-size: 1.1rem; margin: 1.6rem 0 .5rem}}
.advice {{background: var(--panel); border-left: 4px solid var(--mark); margin: 1rem 0; padding: .1rem 1rem .6rem}}
.advice h2 {{margin-top: .6rem}}
.advice ul {{margin: 0; padding-left: 1.2rem}}
.plots {{display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(32rem, 100%), 1fr))}}
figure {{margin: 0}}
svg {{height: auto; width: 100%}}
.wide {{overflow-x: auto}}
table {{border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums}}
th, td {{border-bottom: 1px solid var(--grid); padding: .2rem .6rem; text-align: right; white-space: nowrap}}
thead th {{text-align: center; vertical-align: bottom}}
tbody th, td.text {{font-weight: normal; text-align: left}}
tr.own th {{color: var(--mark); font-weight: 600}}
td.best {{color: var(--mark); font-weight: 700}}
details {{margin-top: .8rem}}
summary {{cursor: pointer}}
dl {{display: grid; gap: .2rem 1rem; grid-template-columns: max-content 1fr; margin: 0}}
dt {{font-weight: 600}}
dd {{margin: 0}}
.note {{color: var(--ink); font-size: .85rem; opacity: .8}}
"""
